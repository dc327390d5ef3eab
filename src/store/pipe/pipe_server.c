/* The near end of a pipe store. */
#include "store/pipe/pipe.h"
#include <unistd.h>
int pipe_server_new(pipe_server **out_server, int in, int out, const pipe_server_options *options)
{ (void)options; *out_server = NULL; close(in); if (out != in) close(out); return shoal_fail(SHOAL_SYSTEM, "the pipe store is not there"); }
bool pipe_server_greeted(const pipe_server *server) { (void)server; return false; }
void pipe_server_junk(const pipe_server *server, char *out, size_t size) { (void)server; if (size) *out = 0; }
int pipe_server_tell(pipe_server *server, const char *note) { (void)server; (void)note; return shoal_fail(SHOAL_AGAIN, "the pipe store is not there"); }
pipe_figures pipe_server_figures(const pipe_server *server) { (void)server; return (pipe_figures){0}; }
void pipe_server_free(pipe_server **server) { *server = NULL; }
int pipe_hub_new(pipe_hub **out_hub, int in, int out, const pipe_hub_options *options)
{ (void)options; *out_hub = NULL; close(in); if (out != in) close(out); return shoal_fail(SHOAL_SYSTEM, "the pipe store is not there"); }
int pipe_hub_tell(pipe_hub *hub, const char *note) { (void)hub; (void)note; return shoal_fail(SHOAL_AGAIN, "the pipe store is not there"); }
pipe_figures pipe_hub_figures(const pipe_hub *hub) { (void)hub; return (pipe_figures){0}; }
void pipe_hub_free(pipe_hub **hub) { *hub = NULL; }
