// Perfetto's protobuf traces.
//
// Source: protos/perfetto/trace of Perfetto (trace_packet.proto, track_event.proto, track_descriptor.proto,
// interned_data.proto, clock_snapshot.proto); the numbers below are those of their fields.
#include <limits>
#include <protozero/pbf_writer.hpp>
#include <unordered_map>
#include <vector>

#include "timeline.hpp"

namespace iprof {

namespace {

using protozero::pbf_writer;

namespace trace {
constexpr uint32_t kPacket = 1;
}
namespace packet {
constexpr uint32_t kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11, kInternedData = 12,
                   kSequenceFlags = 13, kDefaults = 59, kTrackDescriptor = 60;
constexpr uint32_t kStateCleared = 1, kNeedsState = 2;  // sequence flags
}  // namespace packet
namespace clock_snapshot {
constexpr uint32_t kClocks = 1, kPrimaryClock = 2, kClockId = 1, kTimestamp = 2;
constexpr uint32_t kRealtime = 1, kBoottime = 6;  // built-in clocks
}  // namespace clock_snapshot
namespace defaults {
constexpr uint32_t kTimestampClockId = 58;
}
namespace descriptor {
constexpr uint32_t kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParentUuid = 5;
}
namespace process_descriptor {
constexpr uint32_t kPid = 1, kName = 6;
}
namespace thread_descriptor {
constexpr uint32_t kPid = 1, kTid = 2, kName = 5;
}
namespace track_event {
constexpr uint32_t kCategoryIids = 3, kAnnotations = 4, kType = 9, kNameIid = 10, kTrackUuid = 11, kName = 23;
constexpr int32_t kBegin = 1, kEnd = 2, kInstant = 3;  // types
}  // namespace track_event
namespace annotation {
constexpr uint32_t kBool = 2, kString = 6, kName = 10;
}
namespace interned {
constexpr uint32_t kCategories = 1, kEventNames = 2, kIid = 1, kName = 2;
}

constexpr uint32_t kSequence = 1;
constexpr uint64_t kOperatorCategory = 1, kBackwardCategory = 2, kScopeCategory = 3, kLogCategory = 4;

uint64_t category_iid(const Operator& op) {
    switch (op.kind) {
        case OperatorKind::kBackward:
            return kBackwardCategory;
        case OperatorKind::kScope:
            return kScopeCategory;
        default:
            return kOperatorCategory;
    }
}

class PerfettoWriter : public TimelineWriter {
public:
    explicit PerfettoWriter(Output& output) : output_(output) {}

    void begin(const Thread& thread, const Operator& op, uint32_t, int64_t at_ns) override {
        begin_slice(track_of(thread, at_ns), op, at_ns);
    }

    void end(const Thread& thread, const Operator&, int64_t, int64_t end_ns, bool unpaired) override {
        end_slice(track_of(thread, end_ns), end_ns, unpaired);
    }

    void scope(const Thread& thread, const Operator& op, int64_t begin_ns, int64_t end_ns, bool nested,
               bool unpaired) override {
        const uint64_t thread_track = track_of(thread, begin_ns);
        const uint64_t track = nested ? thread_track : async_track_of(*thread.process, begin_ns, end_ns);
        begin_slice(track, op, begin_ns);
        end_slice(track, end_ns, unpaired);
    }

    void log(const Event& event) override {
        const uint64_t track = track_of(*event.thread, event.timestamp_ns);
        packet(event.timestamp_ns, [&](pbf_writer& fields) {
            pbf_writer slice(fields, packet::kTrackEvent);
            slice.add_enum(track_event::kType, track_event::kInstant);
            slice.add_uint64(track_event::kTrackUuid, track);
            slice.add_uint64(track_event::kCategoryIids, kLogCategory);
            slice.add_string(track_event::kName, event.name.data(), event.name.size());
            annotate(slice, "logger", event.overload_name);
            annotate(slice, "level", log_level_name(event.log_level));
        });
    }

    // Names may have come after the track: a later descriptor of the same track counts.
    void finish(const Registry& registry) override {
        for (const Thread& thread : registry.threads()) {
            if (thread.index >= threads_.size() || threads_[thread.index] == 0) continue;
            describe_process(*thread.process);
            describe_thread(thread);
        }
    }

private:
    template <typename Fill>
    void packet(int64_t at_ns, Fill&& fill, uint32_t flags = packet::kNeedsState) {
        packet_.clear();
        pbf_writer fields(packet_);
        fields.add_uint64(packet::kTimestamp, static_cast<uint64_t>(at_ns));
        fields.add_uint32(packet::kSequenceId, kSequence);
        fields.add_uint32(packet::kSequenceFlags, flags);
        fill(fields);
        framed_.clear();
        pbf_writer(framed_).add_message(trace::kPacket, packet_);
        output_.write(framed_);
    }

    // The first packet: the clock, and the names of the categories.
    void start(int64_t at_ns) {
        started_ = true;
        const auto declare = [&](pbf_writer& fields) {
            {
                pbf_writer all(fields, packet::kDefaults);
                all.add_uint32(defaults::kTimestampClockId, clock_snapshot::kRealtime);
            }
            {
                pbf_writer snapshot(fields, packet::kClockSnapshot);
                for (const uint32_t clock : {clock_snapshot::kRealtime, clock_snapshot::kBoottime}) {
                    pbf_writer entry(snapshot, clock_snapshot::kClocks);
                    entry.add_uint32(clock_snapshot::kClockId, clock);
                    entry.add_uint64(clock_snapshot::kTimestamp, static_cast<uint64_t>(at_ns));
                }
                snapshot.add_enum(clock_snapshot::kPrimaryClock, clock_snapshot::kRealtime);
            }
            pbf_writer names(fields, packet::kInternedData);
            for (const auto& [iid, name] : {std::pair{kOperatorCategory, "operator"},
                                            {kBackwardCategory, "backward"},
                                            {kScopeCategory, "scope"},
                                            {kLogCategory, "log"}}) {
                add_interned(names, interned::kCategories, iid, name);
            }
        };
        packet(at_ns, declare, packet::kStateCleared | packet::kNeedsState);
    }

    static void add_interned(pbf_writer& names, uint32_t field, uint64_t iid, std::string_view name) {
        pbf_writer entry(names, field);
        entry.add_uint64(interned::kIid, iid);
        entry.add_string(interned::kName, name.data(), name.size());
    }

    static void annotate(pbf_writer& slice, const char* name, std::string_view value) {
        pbf_writer entry(slice, track_event::kAnnotations);
        entry.add_string(annotation::kName, name);
        entry.add_string(annotation::kString, value.data(), value.size());
    }

    void begin_slice(uint64_t track, const Operator& op, int64_t at_ns) {
        packet(at_ns, [&](pbf_writer& fields) {
            const uint64_t iid = name_iid(op, fields);
            pbf_writer slice(fields, packet::kTrackEvent);
            slice.add_enum(track_event::kType, track_event::kBegin);
            slice.add_uint64(track_event::kTrackUuid, track);
            slice.add_uint64(track_event::kCategoryIids, category_iid(op));
            slice.add_uint64(track_event::kNameIid, iid);
            if (!op.overload_name.empty()) annotate(slice, "overload", op.overload_name);
        });
    }

    void end_slice(uint64_t track, int64_t at_ns, bool unpaired) {
        packet(at_ns, [&](pbf_writer& fields) {
            pbf_writer slice(fields, packet::kTrackEvent);
            slice.add_enum(track_event::kType, track_event::kEnd);
            slice.add_uint64(track_event::kTrackUuid, track);
            if (!unpaired) return;
            pbf_writer entry(slice, track_event::kAnnotations);
            entry.add_string(annotation::kName, "unpaired");
            entry.add_bool(annotation::kBool, true);
        });
    }

    // The id of an operator's name; its first use carries the name.
    uint64_t name_iid(const Operator& op, pbf_writer& fields) {
        const auto [known, added] = names_.emplace(&op, names_.size() + 1);
        if (added) {
            pbf_writer names(fields, packet::kInternedData);
            add_interned(names, interned::kEventNames, known->second, slice_name(op));
        }
        return known->second;
    }

    uint64_t track_of(const Thread& thread, int64_t at_ns) {
        if (!started_) start(at_ns);
        last_ns_ = at_ns;
        if (thread.index >= threads_.size()) threads_.resize(thread.index + 1);
        if (threads_[thread.index] == 0) {
            threads_[thread.index] = next_uuid_++;
            describe_process(*thread.process);
            describe_thread(thread);
        }
        return threads_[thread.index];
    }

    // Perfetto knows a process by its pid alone: those of further hosts are moved out of the way.
    int32_t unique_id(const Process& process, int64_t id) {
        constexpr int32_t kPidLimit = 1 << 22;
        const auto host = hosts_.emplace(process.host, static_cast<int32_t>(hosts_.size())).first->second;
        return static_cast<int32_t>(id) + host % (std::numeric_limits<int32_t>::max() / kPidLimit) * kPidLimit;
    }

    uint64_t process_uuid(const Process& process) {
        if (process.index >= processes_.size()) processes_.resize(process.index + 1);
        uint64_t& uuid = processes_[process.index].uuid;
        if (uuid == 0) uuid = next_uuid_++;
        return uuid;
    }

    void describe_process(const Process& process) {
        const uint64_t uuid = process_uuid(process);
        packet(last_ns_, [&](pbf_writer& fields) {
            pbf_writer track(fields, packet::kTrackDescriptor);
            track.add_uint64(descriptor::kUuid, uuid);
            pbf_writer body(track, descriptor::kProcess);
            body.add_int32(process_descriptor::kPid, unique_id(process, process.pid));
            body.add_string(process_descriptor::kName, process_name(process));
        });
    }

    void describe_thread(const Thread& thread) {
        const Process& process = *thread.process;
        packet(last_ns_, [&](pbf_writer& fields) {
            pbf_writer track(fields, packet::kTrackDescriptor);
            track.add_uint64(descriptor::kUuid, threads_[thread.index]);
            track.add_uint64(descriptor::kParentUuid, process_uuid(process));
            pbf_writer body(track, descriptor::kThread);
            body.add_int32(thread_descriptor::kPid, unique_id(process, process.pid));
            body.add_int32(thread_descriptor::kTid, unique_id(process, thread.tid));
            body.add_string(thread_descriptor::kName, thread_name(thread));
        });
    }

    // A track of the process that is free from begin_ns on.
    uint64_t async_track_of(const Process& process, int64_t begin_ns, int64_t end_ns) {
        const uint64_t parent = process_uuid(process);
        std::vector<Lane>& lanes = processes_[process.index].lanes;
        for (Lane& lane : lanes) {
            if (lane.end_ns > begin_ns) continue;
            lane.end_ns = end_ns;
            return lane.uuid;
        }
        const uint64_t uuid = next_uuid_++;
        lanes.push_back({uuid, end_ns});
        packet(last_ns_, [&](pbf_writer& fields) {
            pbf_writer track(fields, packet::kTrackDescriptor);
            track.add_uint64(descriptor::kUuid, uuid);
            track.add_uint64(descriptor::kParentUuid, parent);
            track.add_string(descriptor::kName, "asynchronous scopes");
        });
        return uuid;
    }

    struct Lane {
        uint64_t uuid;
        int64_t end_ns;
    };
    struct ProcessTracks {
        uint64_t uuid = 0;
        std::vector<Lane> lanes;
    };

    Output& output_;
    std::string packet_;
    std::string framed_;
    bool started_ = false;
    int64_t last_ns_ = 0;
    uint64_t next_uuid_ = 1;
    std::vector<uint64_t> threads_;         // uuid by thread index; 0: none yet
    std::vector<ProcessTracks> processes_;  // by process index
    std::unordered_map<std::string, int32_t> hosts_;
    std::unordered_map<const Operator*, uint64_t> names_;
};

}  // namespace

std::unique_ptr<TimelineWriter> perfetto_writer(Output& output) {
    return std::make_unique<PerfettoWriter>(output);
}

}  // namespace iprof
