// A library that only its caller's RUNPATH finds.
int answer(void) {
    return 42;
}
