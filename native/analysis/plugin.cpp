// The babeltrace2 plugin "iprof": one sink component class for each analysis. No exception leaves this file.
#include <babeltrace2/babeltrace.h>

#include <exception>
#include <memory>

#include "sink.hpp"
#include "tally.hpp"
#include "timeline.hpp"
#include "trace_text.hpp"
#include "tree.hpp"

namespace {

using iprof::Sink;

void report(bt_self_component_sink* component, const char* what) {
    bt_self_component* self = bt_self_component_sink_as_self_component(component);
    BT_CURRENT_THREAD_ERROR_APPEND_CAUSE_FROM_COMPONENT(self, "%s", what);
}

Sink* sink_of(bt_self_component_sink* component) {
    return static_cast<Sink*>(bt_self_component_get_data(bt_self_component_sink_as_self_component(component)));
}

// Runs a step of a component; an exception becomes the error status, its text a cause of babeltrace's error.
template <typename Status, typename Step>
Status guarded(bt_self_component_sink* component, Status error, Step&& step) noexcept {
    try {
        return step();
    } catch (const std::exception& exception) {
        report(component, exception.what());
    } catch (...) {
        report(component, "unknown exception");
    }
    return error;
}

std::unique_ptr<iprof::Analysis> make_tally(const iprof::Parameters& parameters) {
    return std::make_unique<iprof::Tally>(iprof::grouping(parameters.string("by")), parameters.boolean("histograms"));
}

std::unique_ptr<iprof::Analysis> make_tree(const iprof::Parameters&) {
    return std::make_unique<iprof::Tree>();
}

int output_fd(const iprof::Parameters& parameters) {
    return static_cast<int>(parameters.integer("output-fd"));
}

std::unique_ptr<iprof::Analysis> make_trace(const iprof::Parameters& parameters) {
    return std::make_unique<iprof::TraceText>(iprof::plain_output(output_fd(parameters)));
}

std::unique_ptr<iprof::Analysis> make_timeline(const iprof::Parameters& parameters) {
    using Format = iprof::Timeline::Format;
    const Format format = parameters.boolean("chrome") ? Format::kChrome : Format::kPerfetto;
    const int fd = output_fd(parameters);
    auto output = parameters.boolean("gzip") ? iprof::gzip_output(fd) : iprof::plain_output(fd);
    return std::make_unique<iprof::Timeline>(format, std::move(output));
}

using MakeAnalysis = std::unique_ptr<iprof::Analysis> (*)(const iprof::Parameters&);

template <MakeAnalysis make>
bt_component_class_initialize_method_status initialize(bt_self_component_sink* component,
                                                       bt_self_component_sink_configuration*, const bt_value* map,
                                                       void*) {
    return guarded(component, BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_ERROR, [&] {
        const iprof::Parameters parameters(map);
        auto sink = std::make_unique<Sink>(parameters, make(parameters));
        if (bt_self_component_sink_add_input_port(component, "in", nullptr, nullptr) !=
            BT_SELF_COMPONENT_ADD_PORT_STATUS_OK) {
            return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_ERROR;
        }
        bt_self_component_set_data(bt_self_component_sink_as_self_component(component), sink.release());
        return BT_COMPONENT_CLASS_INITIALIZE_METHOD_STATUS_OK;
    });
}

bt_component_class_sink_graph_is_configured_method_status connect(bt_self_component_sink* component) {
    return guarded(component, BT_COMPONENT_CLASS_SINK_GRAPH_IS_CONFIGURED_METHOD_STATUS_ERROR, [&] {
        sink_of(component)->connect(component);
        return BT_COMPONENT_CLASS_SINK_GRAPH_IS_CONFIGURED_METHOD_STATUS_OK;
    });
}

bt_component_class_sink_consume_method_status consume(bt_self_component_sink* component) {
    return guarded(component, BT_COMPONENT_CLASS_SINK_CONSUME_METHOD_STATUS_ERROR,
                   [&] { return sink_of(component)->consume(); });
}

void finalize(bt_self_component_sink* component) {
    delete sink_of(component);
}

}  // namespace

BT_PLUGIN_MODULE();
BT_PLUGIN(iprof);
BT_PLUGIN_DESCRIPTION("Analyses of the operators that a PyTorch program ran");

#define IPROF_SINK(id, make, description)                                   \
    BT_PLUGIN_SINK_COMPONENT_CLASS(id, consume);                            \
    BT_PLUGIN_SINK_COMPONENT_CLASS_DESCRIPTION(id, description);            \
    BT_PLUGIN_SINK_COMPONENT_CLASS_INITIALIZE_METHOD(id, initialize<make>); \
    BT_PLUGIN_SINK_COMPONENT_CLASS_GRAPH_IS_CONFIGURED_METHOD(id, connect); \
    BT_PLUGIN_SINK_COMPONENT_CLASS_FINALIZE_METHOD(id, finalize)

IPROF_SINK(tally, make_tally, "Time and calls of each operator");
IPROF_SINK(tree, make_tree, "Time and calls of each path of operators");
IPROF_SINK(trace, make_trace, "Every event as a line of text");
IPROF_SINK(timeline, make_timeline, "Every call as a slice of a timeline");
