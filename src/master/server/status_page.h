/* status_page.h - the page of the web server: status_page.html, which the build
 * makes a C file of (cmake/embed.cmake). */
#ifndef PCCL_MASTER_STATUS_PAGE_H
#define PCCL_MASTER_STATUS_PAGE_H

#include <stddef.h>

extern const unsigned char status_page[];
extern const size_t status_page_size;

#endif
