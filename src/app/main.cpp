#include "app/app.h"

int main(int argc, char** argv) { return convoy::run_app(argc, argv); }
