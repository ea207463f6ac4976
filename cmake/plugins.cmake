# Libraries beside the main one (another backend, a BLAS shim): each has a file cmake/plugin_<name>.cmake that declares its target and
# what it needs, and declines where that is missing. Their sources are in src/plugins/, which the main library leaves out.
file(GLOB plugin_scripts CONFIGURE_DEPENDS "${CMAKE_CURRENT_LIST_DIR}/plugin_*.cmake")
foreach(script IN LISTS plugin_scripts)
  include("${script}")
endforeach()
