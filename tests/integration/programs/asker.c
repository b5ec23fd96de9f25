// A library that opens a neighbour by its bare name, which only the library's own RUNPATH finds, and gives its answer.
#include <dlfcn.h>

int ask(void) {
    void* neighbour = dlopen(NEIGHBOUR, RTLD_NOW);
    if (!neighbour) return 1;
    if (dlerror()) return 2;
    int (*answer)(void) = (int (*)(void))dlsym(neighbour, "answer");
    return answer ? answer() : 3;
}
