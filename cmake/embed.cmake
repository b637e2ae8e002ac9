# cmake -DFROM=FILE -DTO=FILE.c -DNAME=NAME -P embed.cmake
#
# Writes a C file that defines NAME, the bytes of a file, and NAME_size.
file(READ ${FROM} bytes HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n"
    bytes "${bytes}")
get_filename_component(header ${FROM} NAME_WE)
file(WRITE ${TO} "#include \"${header}.h\"
const unsigned char ${NAME}[] = {
${bytes}};
const size_t ${NAME}_size = sizeof ${NAME};
")
