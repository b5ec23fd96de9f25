// Opens a neighbour by its bare name, by $ORIGIN and itself by a null name; exits with what the neighbour
// answers.
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    void* bare = dlopen("libneighbour.so", RTLD_NOW);
    if (!bare) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    if (!dlopen("$ORIGIN/below/libneighbour.so", RTLD_NOW)) return 2;
    if (!dlopen(NULL, RTLD_NOW)) return 3;
    if (dlopen("libdoesnotexist.so", RTLD_NOW) || !dlerror()) return 4;
    int (*answer)(void) = (int (*)(void))dlsym(bare, "answer");
    return answer ? answer() : 5;
}
