// Exits with what a library answers.
int ask(void);

int main(void) {
    return ask();
}
