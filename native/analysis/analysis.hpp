// What an analysis is to the sink that feeds it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "model.hpp"

namespace iprof {

class Analysis {
public:
    virtual ~Analysis() = default;
    // An event of a process that belongs to the run, in time order.
    virtual void on_event(const Event& event) = 0;
    // False when further events would be for nothing, because the output failed.
    virtual bool wants_more() const { return true; }
    // No event will follow; adds the analysis's own keys to the document that the sink writes.
    virtual void finish(const Registry& registry, nlohmann::json& document) = 0;
};

}  // namespace iprof
