// The parameters of a sink component: a babeltrace map whose entries must be there and have the right type.
#pragma once

#include <babeltrace2/babeltrace.h>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace iprof {

class Parameters {
public:
    explicit Parameters(const bt_value* map) : map_(map) {}

    std::string string(const char* name) const {
        const bt_value* value = entry(name);
        if (!bt_value_is_string(value)) throw std::invalid_argument(std::string(name) + " is not a string");
        return bt_value_string_get(value);
    }

    int64_t integer(const char* name) const {
        const bt_value* value = entry(name);
        if (!bt_value_is_signed_integer(value)) throw std::invalid_argument(std::string(name) + " is not an integer");
        return bt_value_integer_signed_get(value);
    }

    bool boolean(const char* name) const {
        const bt_value* value = entry(name);
        if (!bt_value_is_bool(value)) throw std::invalid_argument(std::string(name) + " is not a boolean");
        return bt_value_bool_get(value) == BT_TRUE;
    }

private:
    const bt_value* entry(const char* name) const {
        const bt_value* value = bt_value_map_borrow_entry_value_const(map_, name);
        if (!value) throw std::invalid_argument(std::string("missing parameter ") + name);
        return value;
    }

    const bt_value* map_;
};

}  // namespace iprof
