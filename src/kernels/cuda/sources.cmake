# The files of the cuda backend, for the build with CUDA and for the one against its stand-in.
set(cuda_sources
  backend.cpp conv.cpp cudnn_graph.cpp device.cpp engine_cache.cpp family.cpp intake.cpp library_conv.cpp library_plan.cpp library_workspace.cpp linear.cpp matmul.cpp memory.cpp product_conv.cpp read_types.cpp recording.cpp
  status.cpp target.cpp tune.cpp views.cpp)
set(cuda_kernels
  cell_norm.cu channel.cu context.cu copy.cu direct_conv.cu dropout.cu elementwise.cu local_conv.cu loss.cu lrn.cu nll.cu norm.cu pointwise.cu pool.cu rearrange.cu resample.cu slices.cu
  softmax.cu tiled_grad_weight.cu update.cu)
set(cuda_tests intake_test.cpp engine_cache_test.cpp product_conv_test.cpp slices_test.cpp status_test.cpp tiled_grad_weight_test.cpp views_test.cpp)
