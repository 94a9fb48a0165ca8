/* consumer MODEL: one vector through the C interface. */
#include <pozor/pozor.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char** argv) {
  pozor_model* model = NULL;
  pozor_text text = {"a", 1};
  float vector[4096];
  if (argc != 2 || pozor_abi_version() != POZOR_ABI_VERSION) return 2;
  if (pozor_model_load(argv[1], strlen(argv[1]), NULL, &model) != POZOR_OK ||
      pozor_model_dimensions(model, NULL) > 4096 ||
      pozor_model_encode(model, &text, 1, vector, 4096, NULL, NULL) != POZOR_OK) {
    fprintf(stderr, "%s\n", pozor_error_message());
    return 1;
  }
  printf("Pozor %s from C: %d numbers\n", pozor_version(),
         (int)pozor_model_dimensions(model, NULL));
  pozor_model_free(model);
  return 0;
}
