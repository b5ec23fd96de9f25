#include "output.hpp"

#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <stdexcept>

namespace iprof {

namespace {

int write_all(int fd, std::string_view data) {
    while (!data.empty()) {
        const ssize_t count = ::write(fd, data.data(), data.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return errno;
        data.remove_prefix(static_cast<size_t>(count));
    }
    return 0;
}

class PlainOutput : public Output {
public:
    explicit PlainOutput(int fd) : fd_(fd) {}

protected:
    int put(std::string_view data) override { return write_all(fd_, data); }

private:
    int fd_;
};

class GzipOutput : public Output {
public:
    explicit GzipOutput(int fd) : fd_(fd) {
        constexpr int kGzipHeader = 16;  // added to the window size, as zlib documents
        constexpr int kFast = 3;
        if (deflateInit2(&stream_, kFast, Z_DEFLATED, MAX_WBITS + kGzipHeader, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
            throw std::runtime_error("cannot set up compression");
        }
    }
    ~GzipOutput() override { deflateEnd(&stream_); }

protected:
    int put(std::string_view data) override { return compress(data, Z_NO_FLUSH); }
    int close() override { return compress({}, Z_FINISH); }

private:
    int compress(std::string_view data, int mode) {
        stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
        stream_.avail_in = static_cast<uInt>(data.size());
        do {
            stream_.next_out = reinterpret_cast<Bytef*>(compressed_);
            stream_.avail_out = sizeof compressed_;
            deflate(&stream_, mode);
            const int error = write_all(fd_, {compressed_, sizeof compressed_ - stream_.avail_out});
            if (error != 0) return error;
        } while (stream_.avail_out == 0);
        return 0;
    }

    int fd_;
    z_stream stream_{};
    char compressed_[1 << 16];
};

}  // namespace

void Output::flush() {
    if (error_ == 0) error_ = put(buffer_);
    buffer_.clear();
}

void Output::finish() {
    flush();
    if (error_ == 0) error_ = close();
}

std::unique_ptr<Output> plain_output(int fd) {
    return std::make_unique<PlainOutput>(fd);
}
std::unique_ptr<Output> gzip_output(int fd) {
    return std::make_unique<GzipOutput>(fd);
}

}  // namespace iprof
