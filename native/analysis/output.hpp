// Buffered output to a file descriptor. The first failure is kept and later output dropped, so that writers need not
// ask after each line.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace iprof {

class Output {
public:
    virtual ~Output() = default;
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    void write(std::string_view data) {
        buffer_.append(data);
        if (buffer_.size() >= kBufferSize) flush();
    }
    // Writes what is left; to be called once, at the end.
    void finish();
    // The errno of the first failure, or 0.
    int error() const { return error_; }

protected:
    Output() { buffer_.reserve(2 * kBufferSize); }
    // Writes data; returns 0 or an errno.
    virtual int put(std::string_view data) = 0;
    virtual int close() { return 0; }

private:
    static constexpr size_t kBufferSize = 1 << 18;
    void flush();

    std::string buffer_;
    int error_ = 0;
};

// Neither closes the descriptor.
std::unique_ptr<Output> plain_output(int fd);
std::unique_ptr<Output> gzip_output(int fd);

}  // namespace iprof
