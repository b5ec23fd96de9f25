// A library that only its caller's RUNPATH finds.
#ifndef ANSWER
#define ANSWER 42
#endif

int answer(void) {
    return ANSWER;
}
