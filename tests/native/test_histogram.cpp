#include <catch2/catch.hpp>

#include "histogram.hpp"

using iprof::Histogram;

TEST_CASE("a duration lies in its bucket, whose middle is near it") {
    for (int64_t duration_ns = 1; duration_ns > 0 && duration_ns < INT64_MAX / 4; duration_ns += duration_ns / 7 + 1) {
        Histogram histogram;
        histogram.add(duration_ns);
        const auto buckets = histogram.buckets();
        REQUIRE(buckets.size() == 1);
        REQUIRE(buckets[0].low_ns <= duration_ns);
        REQUIRE(duration_ns <= buckets[0].high_ns);
        const double middle_ns = (static_cast<double>(buckets[0].low_ns) + static_cast<double>(buckets[0].high_ns)) / 2;
        REQUIRE(middle_ns == Approx(static_cast<double>(duration_ns)).epsilon(0.016));
    }
}

TEST_CASE("buckets come in order, whatever the order of durations") {
    Histogram histogram;
    for (const int64_t duration_ns : {5000, 3, 70, 5000, 0}) histogram.add(duration_ns);
    const auto buckets = histogram.buckets();
    REQUIRE(buckets.size() == 4);
    CHECK(buckets[0].low_ns == 0);
    CHECK(buckets[1].low_ns == 3);
    CHECK(buckets[2].low_ns == 70);
    CHECK(buckets[2].high_ns == 71);
    CHECK(buckets[3].count == 2);
}
