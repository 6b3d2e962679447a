package rest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"blockdesk/bench"
)

// staticServer is nginx with one worker on one core, the yardstick of REST
// reads: sendfile, keep-alive, ETag, no access log, and precompressed files.
type staticServer struct {
	cmd    *exec.Cmd
	exited chan error
	url    string // Debian's default: a file is opened for each request
	cached string // with open_file_cache: a file is opened once
	root   string
}

// nginxConf has one process, so that its CPU time is that of one PID.
const nginxConf = `
worker_processes 1;
daemon off;
master_process off;
pid %[1]s/nginx.pid;
error_log %[1]s/error.log;
events { worker_connections 1024; }
http {
  sendfile on;
  tcp_nopush on;
  access_log off;
  etag on;
  keepalive_requests 1000000000;
  default_type "application/json; charset=utf-8";
  client_body_temp_path %[1]s/tmp;
  proxy_temp_path %[1]s/tmp;
  fastcgi_temp_path %[1]s/tmp;
  uwsgi_temp_path %[1]s/tmp;
  scgi_temp_path %[1]s/tmp;
  gzip_static on;
  server {
    listen 127.0.0.1:%[2]d;
    root %[1]s/files;
    open_file_cache max=100;
    open_file_cache_valid 1h;
  }
  server {
    listen 127.0.0.1:%[3]d;
    root %[1]s/files;
  }
}
`

// startStatic runs nginx on a core with files by name, below dir.
func startStatic(ctx context.Context, dir string, core int, files map[string][]byte) (*staticServer, error) {
	nginx, err := bench.FindProgram("nginx")
	if err != nil {
		return nil, err
	}
	root := filepath.Join(dir, "files")
	if err := errors.Join(os.MkdirAll(root, 0o700), os.MkdirAll(filepath.Join(dir, "tmp"), 0o700)); err != nil {
		return nil, err
	}
	for name, body := range files {
		if err := os.WriteFile(filepath.Join(root, name), body, 0o600); err != nil {
			return nil, err
		}
	}
	var ports [2]int
	for i := range ports {
		if ports[i], err = freePort(); err != nil {
			return nil, err
		}
	}
	conf := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, ports[0], ports[1]), 0o600); err != nil {
		return nil, err
	}
	s := &staticServer{root: root, exited: make(chan error, 1)}
	s.cached, s.url = fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	var log strings.Builder
	s.cmd = exec.Command("taskset", "-c", strconv.Itoa(core), nginx, "-c", conf, "-p", dir)
	s.cmd.Stderr = &log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { s.exited <- s.cmd.Wait() }()
	for _, port := range ports {
		if err := s.await(ctx, port); err != nil {
			return nil, errors.Join(err, s.stop(), errors.New(log.String()))
		}
	}
	return s, nil
}

// await returns when the port takes connections.
func (s *staticServer) await(ctx context.Context, port int) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return conn.Close()
		}
		select {
		case err := <-s.exited:
			s.exited <- err
			return fmt.Errorf("nginx ended while starting: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("nginx is not there after 10 s: %w", err)
		}
	}
}

func (s *staticServer) stop() error {
	err := s.cmd.Process.Signal(syscall.SIGTERM)
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	var ended *exec.ExitError // by our signal: its exit status does not matter
	if err := <-s.exited; err != nil && !errors.As(err, &ended) {
		return err
	}
	return nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
