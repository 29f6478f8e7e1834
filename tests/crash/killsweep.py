#!/usr/bin/env python3
"""killsweep - crash a command at every write-class system call and check what is left.

Independent of any project: it needs Linux x86_64, python3 >= 3.9 and a C compiler.

  killsweep.py --init STATE_DIR --run 'CMD' --verify 'CMD' [options]

For k = 1, 2, 3 ... a fresh copy of STATE_DIR is made, CMD runs inside it under a small
ptrace tracer (source below, compiled once under /tmp), and the k-th write-class system call
made by CMD or by any of its children and threads (one global count, so `git` started
by CMD is covered) meets the fault. Then the verify command runs in what is left.
The sweep ends when CMD completes without reaching call k.

Write-class: open with O_CREAT/O_TRUNC, write*, pwrite*, copy_file_range, sendfile, rename*,
link*, symlink*, unlink*, mkdir*, rmdir, fsync, fdatasync, sync*, msync, (f)truncate,
fallocate, (f)chmod*, FICLONE; only for paths below the copy. --net adds sends on sockets.
Not seen: stores through mmap, io_uring.

Faults (--mode)
  kill            SIGKILL before the call happens (all processes; see --scope)
  torn            a write of n bytes writes n/2, then SIGKILL; other calls: as kill
  errno:NAME      the call fails once with NAME (ENOSPC, EIO, EINTR, EMFILE, ...)
  errno:NAME+     that call and all later ones fail (a disk that stays full); with EINTR the next 99, since nothing is interrupted for ever
  errno:A,B,C[+]  the k-th call fails with A, B or C in turn
  stop            the caller is held before the call while --while CMD runs, then goes on
Planted bugs      --skip fsync:refs/,rename:views: every call of that name with that text in its path is not made but
                  seems to succeed, as if the program had forgotten it or the disk lied: the verify must notice
File systems      --no-exchange: renameat2 with RENAME_EXCHANGE fails with EINVAL, as on file systems that do not know it
Scope (--scope)   all = every process dies; caller = only the one that made the call (its
                  parent sees a dead child); root = only the first process (orphans go on)
Power loss        --power ext4|xfs|btrfs: the copy lives on a loop-mounted image; after the kill
                  the image is copied WITHOUT sync, the copy is mounted (journal replay) and
                  verified: what was not fsynced is gone. Needs root, loop devices, mkfs.
                  --shuffle S: S runs per point. In run 2 the file system commits its journal before the cut, as it does
                  by itself every few seconds: names are there, unsynced data is not. In runs 3..S random pages
                  of the unsynced data are written first, with and without that commit (reordering). With --turns, each point
                  gets one of the S runs, in turns; the cut after the end gets all.

The commands run with the copy as working directory; {dir} is replaced by its path. The
verify command also gets KS_DIR, KS_K (0 = no fault), KS_FAULT (kill, ENOSPC, ENOSPC+, power, ...), KS_POINT, KS_ACK (file with the
command's stdout: print a line per acknowledged operation and let verify insist on it),
KS_ERR (file with its stderr), KS_HIT (1 = the fault was met), KS_RC (exit status of CMD, or 'killed'), KS_PHASE (verify, rerun) and, with mode stop, KS_WHILE_RC
and KS_WHILE_OUT (status and output file of the --while command). Exit 0 = state good.
--rerun runs CMD again after the verify, without a fault, asks for exit 0 and verifies again
(no stale lock may stop the work). Exit status: 0 no failure, 1 failures, 2 usage/setup.
--verify-python FILE instead of --verify: FILE is loaded once, and its main() runs in a fork for each point, in the same
folder with the same environment; what it returns is the exit status. No interpreter is started for each point then.
"""
import argparse, concurrent.futures as cf, ctypes, errno, functools, hashlib, importlib.util, json, multiprocessing, os, random, select
import shutil, signal, subprocess, sys, tempfile, time, traceback

TRACER = r'''
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
enum { FD, P0, AT0, OPEN0, OPEN1, OPENAT2, PP, ATAT, NONE, SYM, SYMAT, OUT0, CFR, SOCK, IOC, CREAT };
struct sc { long nr; const char *n; int how; int cnt; } T[] = {
 {SYS_open,"open",OPEN0,-1},{SYS_openat,"openat",OPEN1,-1},{SYS_openat2,"openat2",OPENAT2,-1},{SYS_creat,"creat",CREAT,-1},
 {SYS_write,"write",FD,2},{SYS_pwrite64,"pwrite64",FD,2},{SYS_writev,"writev",FD,-1},{SYS_pwritev,"pwritev",FD,-1},
 {SYS_pwritev2,"pwritev2",FD,-1},{SYS_sendfile,"sendfile",OUT0,-1},{SYS_copy_file_range,"copy_file_range",CFR,-1},
 {SYS_fallocate,"fallocate",FD,-1},{SYS_ftruncate,"ftruncate",FD,-1},{SYS_truncate,"truncate",P0,-1},
 {SYS_rename,"rename",PP,-1},{SYS_renameat,"renameat",ATAT,-1},{SYS_renameat2,"renameat2",ATAT,-1},
 {SYS_link,"link",PP,-1},{SYS_linkat,"linkat",ATAT,-1},{SYS_symlink,"symlink",SYM,-1},{SYS_symlinkat,"symlinkat",SYMAT,-1},
 {SYS_unlink,"unlink",P0,-1},{SYS_unlinkat,"unlinkat",AT0,-1},{SYS_rmdir,"rmdir",P0,-1},
 {SYS_mkdir,"mkdir",P0,-1},{SYS_mkdirat,"mkdirat",AT0,-1},{SYS_fsync,"fsync",FD,-1},{SYS_fdatasync,"fdatasync",FD,-1},
 {SYS_sync_file_range,"sync_file_range",FD,-1},{SYS_syncfs,"syncfs",FD,-1},{SYS_sync,"sync",NONE,-1},{SYS_msync,"msync",NONE,-1},
 {SYS_chmod,"chmod",P0,-1},{SYS_fchmod,"fchmod",FD,-1},{SYS_fchmodat,"fchmodat",AT0,-1},{SYS_fchmodat2,"fchmodat2",AT0,-1},
 {SYS_ioctl,"ioctl",IOC,-1},{SYS_sendto,"sendto",SOCK,-1},{SYS_sendmsg,"sendmsg",SOCK,-1},{SYS_sendmmsg,"sendmmsg",SOCK,-1}};
#define NT ((int)(sizeof T/sizeof*T))
static long K=0,count=0; static int hit=0,net=0,err=0,persist=0; static char mode='k',scope='a';
static char root[PATH_MAX]; static size_t rl; static FILE*lg; static const char*wcmd=0; static pid_t child; static int rst=-1;
static char pt[2*PATH_MAX+128]; static const char*skip=0; static int noex=0;
/* "call:text,call:text": calls of that name whose point has that text are not made, and seem to succeed */
static int skipped(const char*n){ if(!skip)return 0; char c[4096],*sv,*t; snprintf(c,sizeof c,"%s",skip);
  for(t=strtok_r(c,",",&sv);t;t=strtok_r(0,",",&sv)){ char*q=strchr(t,':'); if(!q)continue; *q=0; if(!strcmp(t,n)&&strstr(pt,q+1))return 1; } return 0; }
static int rdstr(pid_t p,unsigned long a,char*b,size_t n){ size_t i=0; while(i<n-1){ size_t c=4096-(a+i)%4096; if(c>n-1-i)c=n-1-i;
  struct iovec l={b+i,c},r={(void*)(a+i),c}; ssize_t g=process_vm_readv(p,&l,1,&r,1,0); if(g<=0)break;
  char*z=memchr(b+i,0,g); if(z)return 0; i+=g; } b[i<n?i:n-1]=0; return i?0:-1; }
static void norm(char*s){ char o[PATH_MAX]="",*sv,*t; char c[PATH_MAX]; snprintf(c,sizeof c,"%s",s);
  for(t=strtok_r(c,"/",&sv);t;t=strtok_r(0,"/",&sv)){ if(!strcmp(t,"."))continue;
    if(!strcmp(t,"..")){char*e=strrchr(o,'/'); if(e)*e=0; continue;} strncat(o,"/",sizeof o-strlen(o)-1); strncat(o,t,sizeof o-strlen(o)-1);} strcpy(s,*o?o:"/"); }
static int lnk(pid_t p,const char*w,char*b){ char q[64]; snprintf(q,sizeof q,"/proc/%d/%s",p,w); ssize_t n=readlink(q,b,PATH_MAX-1); if(n<0)return -1; b[n]=0; return 0; }
static int fdp(pid_t p,int fd,char*b){ char w[32]; snprintf(w,sizeof w,"fd/%d",fd); return lnk(p,w,b); }
static int atp(pid_t p,int dfd,unsigned long a,char*b){ char s[PATH_MAX],d[PATH_MAX]; if(rdstr(p,a,s,sizeof s))return -1;
  if(s[0]=='/'){strcpy(b,s);} else { if(dfd==AT_FDCWD){ if(lnk(p,"cwd",d))return -1; } else if(fdp(p,dfd,d))return -1;
    d[PATH_MAX/2]=0; s[PATH_MAX/2-2]=0; snprintf(b,PATH_MAX,"%s/%s",d,s);} norm(b); return 0; }
static int under(const char*b){ return !strncmp(b,root,rl)&&(b[rl]==0||b[rl]=='/'); }
static const char*rel(const char*b){ return under(b)?(b[rl]?b+rl+1:"."):b; }
static int wanted(pid_t p,struct user_regs_struct*r,struct sc*s){ char a[PATH_MAX]="",b[PATH_MAX]=""; long fl; int ok=0;
 switch(s->how){
 case NONE: snprintf(pt,sizeof pt,"%s",s->n); return 1;
 case FD: case OUT0: case CFR: case SOCK: case IOC: { int fd=s->how==CFR?r->rdx:r->rdi; if(s->how==IOC&&(unsigned)r->rsi!=0x40049409u)return 0;
   if(fdp(p,fd,a))return 0; if(!strncmp(a,"socket:",7)){ if(!net)return 0; ok=1; } else { if(s->how==SOCK)return 0; ok=under(a);} break; }
 case P0: ok=!atp(p,AT_FDCWD,r->rdi,a)&&under(a); break;
 case CREAT: ok=!atp(p,AT_FDCWD,r->rdi,a)&&under(a); break;
 case OPEN0: fl=r->rsi; if(!(fl&(O_CREAT|O_TRUNC)))return 0; ok=!atp(p,AT_FDCWD,r->rdi,a)&&under(a); break;
 case OPEN1: fl=r->rdx; if(!(fl&(O_CREAT|O_TRUNC)))return 0; ok=!atp(p,(int)r->rdi,r->rsi,a)&&under(a); break;
 case OPENAT2: { unsigned long long h=0; struct iovec l={&h,8},q={(void*)r->rdx,8}; process_vm_readv(p,&l,1,&q,1,0);
   if(!(h&(O_CREAT|O_TRUNC)))return 0; ok=!atp(p,(int)r->rdi,r->rsi,a)&&under(a); break; }
 case AT0: ok=!atp(p,(int)r->rdi,r->rsi,a)&&under(a); break;
 case PP: ok=!atp(p,AT_FDCWD,r->rdi,a)&&!atp(p,AT_FDCWD,r->rsi,b)&&(under(a)||under(b)); break;
 case ATAT: ok=!atp(p,(int)r->rdi,r->rsi,a)&&!atp(p,(int)r->rdx,r->r10,b)&&(under(a)||under(b)); break;
 case SYM: ok=!atp(p,AT_FDCWD,r->rsi,a)&&under(a); break;
 case SYMAT: ok=!atp(p,(int)r->rsi,r->rdx,a)&&under(a); break; }
 if(ok){ a[PATH_MAX/2]=0; b[PATH_MAX/2]=0; if(s->cnt==2) snprintf(pt,sizeof pt,"%s %s [%llu]",s->n,rel(a),r->rdx); else snprintf(pt,sizeof pt,"%s %s%s%s",s->n,rel(a),*b?" -> ":"",*b?rel(b):""); }
 return ok; }
static int tgid(pid_t p){ char f[64],l[256]; int t=p; snprintf(f,sizeof f,"/proc/%d/status",p); FILE*h=fopen(f,"r"); if(!h)return p;
  while(fgets(l,sizeof l,h)) if(sscanf(l,"Tgid: %d",&t)==1)break; fclose(h); return t; }
static void fin(void){ fprintf(lg,"END %ld %d %d\n",count,hit,rst); fclose(lg); }
static pid_t*all=0; static int na=0,ca=0,dying=0;   /* every task seen; all must be dead and reaped before we return */
static void seen(pid_t p){ for(int i=0;i<na;i++)if(all[i]==p)return; if(na==ca){ca=ca?2*ca:64;all=realloc(all,ca*sizeof*all);} all[na++]=p; }
static void gone(pid_t p){ for(int i=0;i<na;i++)if(all[i]==p){all[i]=all[--na];return;} }
static void killall_(void){ dying=1; for(int i=0;i<na;i++) kill(all[i],SIGKILL); }
static void boom(pid_t p){ hit=1; if(scope=='a') killall_(); else kill(scope=='r'?child:tgid(p),SIGKILL); }
static void onalrm(int s){ (void)s; if(dying){fin();_exit(3);} fprintf(lg,"TIMEOUT\n"); killall_(); alarm(10); }
int main(int c,char**v){ prctl(PR_SET_PDEATHSIG,SIGKILL); int o,tmo=60; const char*lf="/dev/null";
 while((o=getopt(c,v,"+k:m:s:r:l:T:nw:e:px:X"))>0) switch(o){ case'k':K=atol(optarg);break;case'm':mode=*optarg;break;case's':scope=*optarg;break;
  case'r':if(!realpath(optarg,root))return 2;rl=strlen(root);break;case'l':lf=optarg;break;case'T':tmo=atoi(optarg);break;case'n':net=1;break;
  case'w':wcmd=optarg;break;case'e':err=atoi(optarg);break;case'p':persist=1;break;case'x':skip=optarg;break;case'X':noex=1;break;default:return 2;}
 lg=fopen(lf,"we"); if(!lg)return 2; setvbuf(lg,0,_IOLBF,0); int pp[2]; if(pipe2(pp,O_CLOEXEC))return 2; child=fork();
 if(!child){ char x; setsid(); close(pp[1]); if(read(pp[0],&x,1)!=1)_exit(126);
  struct sock_filter f[NT+16]; int n=0;
  f[n++]=(struct sock_filter)BPF_STMT(BPF_LD|BPF_W|BPF_ABS,offsetof(struct seccomp_data,arch));
  f[n++]=(struct sock_filter)BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K,AUDIT_ARCH_X86_64,1,0);
  f[n++]=(struct sock_filter)BPF_STMT(BPF_RET|BPF_K,SECCOMP_RET_ALLOW);
  f[n++]=(struct sock_filter)BPF_STMT(BPF_LD|BPF_W|BPF_ABS,offsetof(struct seccomp_data,nr));
  /* most opens only read: the kernel lets them pass without a stop */
  f[n++]=(struct sock_filter)BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K,SYS_openat,0,4);
  f[n++]=(struct sock_filter)BPF_STMT(BPF_LD|BPF_W|BPF_ABS,offsetof(struct seccomp_data,args[2]));
  f[n++]=(struct sock_filter)BPF_JUMP(BPF_JMP|BPF_JSET|BPF_K,O_CREAT|O_TRUNC,1,0);
  f[n++]=(struct sock_filter)BPF_STMT(BPF_RET|BPF_K,SECCOMP_RET_ALLOW);
  f[n++]=(struct sock_filter)BPF_STMT(BPF_LD|BPF_W|BPF_ABS,offsetof(struct seccomp_data,nr));
  for(int i=0;i<NT;i++) f[n++]=(struct sock_filter)BPF_JUMP(BPF_JMP|BPF_JEQ|BPF_K,T[i].nr,NT-i,0);
  f[n++]=(struct sock_filter)BPF_STMT(BPF_RET|BPF_K,SECCOMP_RET_ALLOW);
  f[n++]=(struct sock_filter)BPF_STMT(BPF_RET|BPF_K,SECCOMP_RET_TRACE);
  struct sock_fprog g={n,f}; if(prctl(PR_SET_SECCOMP,SECCOMP_MODE_FILTER,&g)){ prctl(PR_SET_NO_NEW_PRIVS,1,0,0,0);
   if(prctl(PR_SET_SECCOMP,SECCOMP_MODE_FILTER,&g))_exit(125);} execvp(v[optind],v+optind); _exit(127); }
 close(pp[0]);
 if(ptrace(PTRACE_SEIZE,child,0,PTRACE_O_TRACESECCOMP|PTRACE_O_TRACECLONE|PTRACE_O_TRACEFORK|PTRACE_O_TRACEVFORK|PTRACE_O_TRACEEXEC|PTRACE_O_EXITKILL|PTRACE_O_TRACESYSGOOD)){perror("seize");kill(child,9);return 2;}
 { struct sigaction sa={.sa_handler=onalrm}; sigaction(SIGALRM,&sa,0); } alarm(tmo); if(write(pp[1],"x",1)!=1)return 2; close(pp[1]);
 for(;;){ int st; pid_t p=waitpid(-1,&st,__WALL); if(p<0){ if(errno==EINTR)continue; break; }
  if(WIFEXITED(st)||WIFSIGNALED(st)){ gone(p); if(p==child)rst=WIFEXITED(st)?WEXITSTATUS(st):128+WTERMSIG(st); continue; }
  seen(p); if(dying){ kill(p,SIGKILL); ptrace(PTRACE_CONT,p,0,0); continue; }
  int sig=WSTOPSIG(st),ev=st>>16; long res=PTRACE_CONT; int dl=0;
  if(ev==PTRACE_EVENT_SECCOMP){ struct user_regs_struct r; if(ptrace(PTRACE_GETREGS,p,0,&r)){ptrace(PTRACE_CONT,p,0,0);continue;}
   struct sc*s=0; for(int i=0;i<NT;i++)if(T[i].nr==(long)r.orig_rax){s=T+i;break;}
   if(s&&wanted(p,&r,s)){ count++; fprintf(lg,"P %ld %d %s\n",count,p,pt); int now=K&&count==K;
    if(noex&&s->nr==SYS_renameat2&&(r.r8&2)&&!(now&&(mode=='k'||mode=='t'))){ r.orig_rax=-1; r.rax=-EINVAL; ptrace(PTRACE_SETREGS,p,0,&r); }
    else if(!(now&&(mode=='k'||mode=='t'))&&skipped(s->n)){ r.orig_rax=-1; r.rax=s->cnt==2?r.rdx:0; ptrace(PTRACE_SETREGS,p,0,&r); }
    else if(mode=='e'&&K&&(now||(persist&&count>K&&(err!=EINTR||count<K+100)))){ hit=1; r.orig_rax=-1; r.rax=-(long)err; ptrace(PTRACE_SETREGS,p,0,&r); }
    else if(now&&mode=='k'){ boom(p); ptrace(PTRACE_CONT,p,0,0); continue; }
    else if(now&&mode=='t'){ if(s->cnt==2&&r.rdx>1){ r.rdx/=2; ptrace(PTRACE_SETREGS,p,0,&r); res=PTRACE_SYSCALL; hit=2; } else { boom(p); ptrace(PTRACE_CONT,p,0,0); continue; } }
    else if(now&&mode=='s'&&wcmd){ hit=1; fflush(lg); pid_t q=fork(); if(!q){ char wf[PATH_MAX]; snprintf(wf,sizeof wf,"%s.while",lf); int w=open(wf,O_WRONLY|O_CREAT|O_TRUNC,0600); if(w>=0){dup2(w,1);dup2(w,2);} execl("/bin/sh","sh","-c",wcmd,(char*)0); _exit(127);} int ws; while(waitpid(q,&ws,0)<0&&errno==EINTR); fprintf(lg,"WHILE %d\n",WIFEXITED(ws)?WEXITSTATUS(ws):-1); } } }
  else if(sig==(SIGTRAP|0x80)){ if(hit==2){ hit=1; boom(p); ptrace(PTRACE_CONT,p,0,0); continue; } }
  else if(ev==PTRACE_EVENT_STOP){ if(sig==SIGSTOP||sig==SIGTSTP||sig==SIGTTIN||sig==SIGTTOU){ ptrace(PTRACE_LISTEN,p,0,0); continue; } }
  else if(ev){ } else dl=sig;
  ptrace(res,p,0,dl); }
 fin(); return 0; }
'''

def build_tracer():
    tag = hashlib.sha256(TRACER.encode()).hexdigest()[:12]
    d = os.path.join(tempfile.gettempdir(), f"killsweep-{os.getuid()}-{tag}")
    exe = os.path.join(d, "kst")
    if not os.path.exists(exe):
        os.makedirs(d, mode=0o700, exist_ok=True)
        with open(os.path.join(d, "kst.c"), "w") as f:
            f.write(TRACER)
        tmp = f"{exe}.{os.getpid()}"
        cc = os.environ.get("CC", "cc")
        r = subprocess.run([cc, "-O1", "-w", "-o", tmp, os.path.join(d, "kst.c")], capture_output=True, text=True)
        if r.returncode:
            sys.exit(f"killsweep: cannot build the tracer with {cc}:\n{r.stderr}")
        os.rename(tmp, exe)
    return exe

def sh(cmd, **kw):
    return subprocess.run(cmd, capture_output=True, text=True, **kw)

def load(path):
    """Loads the verify program, which may import what stands beside it."""
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec = importlib.util.spec_from_file_location("verify", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main

def forked(function, cwd, env, timeout):
    """Calls a function in a fork. Returns its exit status, or None if it took too long, and what it printed."""
    out, into = os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.setsid()
            os.dup2(into, 1); os.dup2(into, 2)
            os.chdir(cwd); os.environ.update(env)
            sys.stdout = sys.stderr = os.fdopen(1, "w", errors="replace", closefd=False)
            try:
                code = function() or 0
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
        finally:
            os._exit(code)
    os.close(into)
    # What a child of it leaves running holds the pipe open: its own end counts, not that of the pipe.
    end, said, until, code = os.pidfd_open(pid), b"", time.monotonic() + timeout, None
    while (left := until - time.monotonic()) > 0 and code is None:
        ready = select.select([out, end], [], [], left)[0]
        if out in ready and (more := os.read(out, 65536)): said += more
        elif ready: code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code is None:
        os.killpg(pid, signal.SIGKILL); os.waitpid(pid, 0)
    os.close(out); os.close(end)
    return code, said.decode(errors="replace")

class Place:
    """A fresh copy of the initial state, on a plain directory or on its own loop image."""
    def __init__(self, a, name):
        self.a, self.base = a, os.path.join(a.work, name)
        os.makedirs(self.base)
        self.dir, self.img, self.mnts = os.path.join(self.base, "d"), None, []
        if a.power:
            self.img = os.path.join(self.base, "img")
            subprocess.run(["cp", "--sparse=always", a.template, self.img], check=True)      # already formatted and filled
            os.mkdir(self.dir)
            self.mount(self.img, self.dir)
            self.dir = os.path.join(self.dir, "s")
        elif a.init:
            subprocess.run(["cp", "-a", "--reflink=auto", a.init, self.dir], check=True)
        else:
            os.mkdir(self.dir)
    def mount(self, img, at):
        opt = "loop" + {"ext4": ",commit=600", "btrfs": ",commit=600", "xfs": ",nouuid"}[self.a.power]
        r = sh(["mount", "-t", self.a.power, "-o", opt, img, at])
        if r.returncode:
            raise RuntimeError(f"mount failed: {r.stderr.strip()}")
        self.mnts.append(at)
    def power_cut(self, seed, k):
        """Freeze what the block device holds now, throw the cache away, mount the rest."""
        if seed:
            rnd = random.Random(seed * 1000003 + k)
            if seed > 1: self.some_pages(rnd)
            if seed == 1 or rnd.random() < 0.5: self.commit_journal()
        crash = os.path.join(self.base, "crash.img")
        subprocess.run(["cp", "--sparse=always", self.img, crash], check=True)   # no sync before
        self.umount()
        at = os.path.join(self.base, "c")
        os.mkdir(at)
        self.mount(crash, at)
        self.dir = os.path.join(at, "s")
    def some_pages(self, rnd):
        """Random pages reach the block device, whoever wrote them first."""
        libc = ctypes.CDLL(None, use_errno=True)
        libc.sync_file_range.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
        share = rnd.choice([0.1, 0.3, 0.5, 0.8])
        for top, _, files in sorted(os.walk(self.dir)):
            for f in sorted(files):
                f = os.path.join(top, f)
                if os.path.islink(f): continue
                fd = os.open(f, os.O_RDONLY)
                for pg in range(0, os.fstat(fd).st_size, 4096):
                    if rnd.random() < share: libc.sync_file_range(fd, pg, 4096, 7)   # no journal commit
                os.close(fd)
    def commit_journal(self):
        """A strange file is synced: the journal goes to the block device with every name in it, data of other files does not."""
        fd = os.open(os.path.join(self.dir, "..", "strange"), os.O_WRONLY | os.O_CREAT, 0o600)
        os.fsync(fd)
        os.close(fd)
    def umount(self):
        while self.mnts:
            m = self.mnts.pop()
            for _ in range(50):
                if sh(["umount", m]).returncode == 0:
                    break
                time.sleep(0.02)
            else:
                sh(["umount", "-l", m])
    def close(self, keep=False):
        if not keep:
            self.umount()
            shutil.rmtree(self.base, ignore_errors=True)

def make_template(a):
    a.template = os.path.join(a.work, "template.img")
    with open(a.template, "wb") as f:
        f.truncate(a.power_size * 1024 * 1024)
    mk = {"ext4": ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"], "xfs": ["mkfs.xfs", "-q", "-f"],
          "btrfs": ["mkfs.btrfs", "-q", "-f"]}[a.power]
    r = sh(mk + [a.template])
    if r.returncode:
        sys.exit(f"killsweep: {mk[0]}: {r.stderr.strip()}")
    at = os.path.join(a.work, "t")
    os.mkdir(at)
    r = sh(["mount", "-o", "loop", a.template, at])
    if r.returncode:
        sys.exit(f"killsweep: mount: {r.stderr.strip()}")
    try:
        if a.init:
            subprocess.run(["cp", "-a", a.init, os.path.join(at, "s")], check=True)
        else:
            os.mkdir(os.path.join(at, "s"))
    finally:
        subprocess.run(["umount", at], check=True)

VERIFY = None                                # the function that looks at what is left, if it is one

def each(a, points):
    """Runs all points, side by side in processes of their own: a fork of a process with threads is not safe."""
    if a.jobs == 1:
        return [one(a, *point) for point in points]
    with cf.ProcessPoolExecutor(a.jobs, mp_context=multiprocessing.get_context("fork")) as ex:
        try:
            return list(ex.map(functools.partial(star, a), points))
        except BaseException:
            ex.shutdown(cancel_futures=True)
            raise

def star(a, point):
    return one(a, *point)

def fault(a, k):
    """What call k meets, in a word."""
    return "power" if a.power else errno.errorcode[a.err[k % len(a.err)]] + "+" * a.persist if a.m == "e" else a.mode

def one(a, k, seed=0):
    """Run with the fault at call k (0: none). Returns a dict."""
    res = {"k": k, "seed": seed, "ok": True, "hit": False, "point": "", "fail": [], "fault": fault(a, k)}
    pl = None
    try:
        pl = Place(a, f"k{k}.{seed}")
        log, ack = os.path.join(pl.base, "log"), os.path.join(pl.base, "ack")
        run = a.run.replace("{dir}", pl.dir)
        t = [a.exe, "-k", str(k), "-m", a.m, "-s", a.scope[0], "-r", pl.dir, "-l", log, "-T", str(a.timeout)]
        if a.net: t.append("-n")
        if a.skip: t += ["-x", a.skip]
        if a.no_exchange: t.append("-X")
        if a.m == "e": t += ["-e", str(a.err[k % len(a.err)])] + (["-p"] if a.persist else [])
        if a.m == "s": t += ["-w", a.while_.replace("{dir}", pl.dir)]
        env = dict(os.environ, KS_DIR=pl.dir, KS_K=str(k), KS_FAULT=res["fault"])
        with open(ack, "wb") as so, open(os.path.join(pl.base, "err"), "wb") as se:
            subprocess.run(t + ["--", "/bin/sh", "-c", "exec " + run if a.exec_ else run], cwd=pl.dir, stdout=so,
                           stderr=se, stdin=subprocess.DEVNULL, env=env)
        pts, rc = [], "killed"
        for line in open(log, errors="replace"):
            f = line.rstrip("\n").split(" ", 3)
            if f[0] == "P": pts.append(f[3])
            elif f[0] == "WHILE": env["KS_WHILE_RC"], env["KS_WHILE_OUT"] = f[1], log + ".while"
            elif f[0] == "TIMEOUT": res["fail"].append("the command hung")
            elif f[0] == "END":
                res["count"], res["hit"] = int(f[1]), f[2] != "0"
                if f[3] not in ("-1", "137"): rc = f[3]
        res["points"] = pts if k == 0 else None
        res["point"] = pts[k - 1] if 0 < k <= len(pts) else "(end)"
        res["rc"] = rc
        if k and not res["hit"] and not pts and rc == "killed":
            res["fail"].append("the tracer ended early: " + open(os.path.join(pl.base, "err"), errors="replace").read()[-300:])
        if a.m == "e" and k and res["hit"] and a.want_error and rc == "0":
            res["fail"].append("the command said success although a call failed")
        if a.power and k:                        # also after the last call: what was acknowledged must be there
            pl.power_cut(seed, k)
        env.update(KS_DIR=pl.dir, KS_ACK=ack, KS_ERR=os.path.join(pl.base, "err"), KS_POINT=res["point"], KS_RC=rc,
                   KS_HIT="1" if res["hit"] else "0", KS_PHASE="verify")
        def verify(tag):
            if VERIFY:
                code, said = forked(VERIFY, pl.dir, env, a.timeout)
                if code is None: res["fail"].append(f"{tag} hung")
                elif code: res["fail"].append(f"{tag}: exit {code}: " + said.strip().replace("\n", " | ")[-700:])
                return
            try:
                v = subprocess.run(a.verify.replace("{dir}", pl.dir), shell=True, cwd=pl.dir, env=env, capture_output=True,
                                   text=True, errors="replace", timeout=a.timeout, stdin=subprocess.DEVNULL)
            except subprocess.TimeoutExpired:
                res["fail"].append(f"{tag} hung"); return
            if v.returncode:
                res["fail"].append(f"{tag}: exit {v.returncode}: " + (v.stdout + v.stderr).strip().replace("\n", " | ")[-700:])
        verify("verify")
        if a.rerun and k and res["hit"]:
            try:
                r2 = subprocess.run(a.run.replace("{dir}", pl.dir), shell=True, cwd=pl.dir, env=env, capture_output=True,
                                    text=True, errors="replace", timeout=a.timeout, stdin=subprocess.DEVNULL)
                with open(ack, "a") as f: f.write(r2.stdout)
                env["KS_PHASE"] = "rerun"
                if r2.returncode:
                    res["fail"].append(f"rerun: exit {r2.returncode}: " + (r2.stdout + r2.stderr).strip().replace("\n", " | ")[-700:])
                else:
                    verify("verify after rerun")
            except subprocess.TimeoutExpired:
                res["fail"].append("rerun hung")
    except Exception as e:                       # a fault of the harness is never a pass
        res["fail"].append(f"harness: {type(e).__name__}: {e}")
    res["ok"] = not res["fail"]
    if pl: pl.close(a.keep and not res["ok"])
    return res

def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--init", help="directory copied as the initial state (default: empty)")
    p.add_argument("--run", required=True); p.add_argument("--verify"); p.add_argument("--verify-python", metavar="FILE")
    p.add_argument("--mode", default="kill"); p.add_argument("--scope", default="all", choices=["all", "caller", "root"])
    p.add_argument("--while", dest="while_", default="", help="command run while the caller is held (mode stop)")
    p.add_argument("--rerun", action="store_true"); p.add_argument("--net", action="store_true")
    p.add_argument("--skip", default="", metavar="CALL:TEXT,...", help="a planted bug: such calls are not made, and seem to succeed")
    p.add_argument("--no-exchange", action="store_true", help="no two files can change places")
    p.add_argument("--power", choices=["ext4", "xfs", "btrfs"]); p.add_argument("--power-size", type=int, default=0, help="image MiB")
    p.add_argument("--shuffle", type=int, default=1, help="with --power: runs per point")
    p.add_argument("--turns", action="store_true", help="with --shuffle: one run per point, of another kind each time")
    p.add_argument("--want-error", action="store_true", help="mode errno: exit 0 after an injected error is a failure")
    p.add_argument("--jobs", type=int, default=1); p.add_argument("--timeout", type=int, default=60)
    p.add_argument("--max", type=int, default=0, help="at most this many points, evenly spread")
    p.add_argument("--only", help="points a-b or a,b,c"); p.add_argument("--keep", action="store_true", help="keep failing states")
    p.add_argument("--work", help="where the copies go (default /dev/shm or /tmp; /tmp with --power)")
    p.add_argument("--exec", dest="exec_", action="store_true", help="exec CMD directly so that scope root means CMD, not the shell")
    p.add_argument("--json", help="write all results here"); p.add_argument("--list", action="store_true", help="list the points and stop")
    p.add_argument("--show", type=int, default=10, help="failures printed")
    a = p.parse_args()
    if bool(a.verify) == bool(a.verify_python): p.error("one of --verify and --verify-python is needed")
    if a.verify_python:
        global VERIFY
        VERIFY = load(a.verify_python)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    a.err, a.persist = [], False
    a.m = {"kill": "k", "torn": "t", "stop": "s"}.get(a.mode)
    if a.m is None:
        n = a.mode.partition(":")[2]
        a.persist, n = n.endswith("+"), n.rstrip("+")
        if not a.mode.startswith("errno:") or not all(hasattr(errno, one) for one in n.split(",")):
            p.error("--mode is kill, torn, stop or errno:NAME[,NAME...][+]")
        a.m, a.err = "e", [getattr(errno, one) for one in n.split(",")]
    if a.m == "s" and not a.while_: p.error("--mode stop needs --while")
    if a.power and a.m not in "kt": p.error("--power goes with kill or torn")
    if a.init:
        a.init = os.path.realpath(a.init)
        if not os.path.isdir(a.init): p.error("--init is not a directory")
    if a.shuffle > 1 and not a.power: p.error("--shuffle goes with --power")
    if a.power == "btrfs": a.jobs = 1              # copies share one file-system id; btrfs wants one at a time
    a.power_size = a.power_size or {"ext4": 32, "xfs": 320, "btrfs": 128, None: 0}[a.power]
    a.exe = build_tracer()
    base = a.work or ("/dev/shm" if os.access("/dev/shm", os.W_OK) else "/tmp")
    a.work = tempfile.mkdtemp(prefix="ks.", dir=base)
    t0, rows, bad = time.time(), [], []
    try:
        if a.power: make_template(a)
        z = one(a, 0)
        if not z["ok"] or z.get("rc") != "0":
            if a.list and z.get("points"): print("\n".join(f"{i+1:5} {x}" for i, x in enumerate(z["points"])))
            print(f"killsweep: the run WITHOUT a fault fails (exit {z.get('rc')}): {z['fail']}", file=sys.stderr)
            return 2
        n = z["count"]
        if a.list:
            print("\n".join(f"{i+1:5} {x}" for i, x in enumerate(z["points"]))); return 0
        if a.only:
            ks = []
            for part in a.only.split(","):
                x, _, y = part.partition("-"); ks += range(int(x), int(y or x) + 1)
        else:
            ks = list(range(1, n + 1))
            if a.m == "t":                         # only writes can be torn; at other calls it is the same as kill
                ks = [k for k in ks if k <= len(z["points"]) and "write" in z["points"][k - 1].split()[0]]
            if a.max and len(ks) > a.max:
                ks = sorted({ks[i * len(ks) // a.max] for i in range(a.max)} | {ks[-1]})
        rows += each(a, [(k, s) for k in ks for s in ([k % a.shuffle] if a.turns else range(a.shuffle))])
        k = n + 1                                  # until the command completes (it may make more calls than
        while not a.only and k < 4 * n + 100:      # the first run did); with --power this is the cut after the end
            last = [one(a, k, s) for s in range(a.shuffle)]
            rows += last; k += 1
            if not any(r["hit"] for r in last): break
    finally:
        if not a.keep:
            for m in [x.split()[1] for x in open("/proc/mounts") if x.split()[1].startswith(a.work + "/")]: sh(["umount", "-l", m])
            shutil.rmtree(a.work, ignore_errors=True)
    bad = [r for r in rows if not r["ok"]]
    hits = sum(r["hit"] for r in rows)
    print(f"killsweep {a.mode}{' scope=' + a.scope if a.scope != 'all' else ''}{' power=' + a.power if a.power else ''}: "
          f"{n} points, {len(rows)} runs, {hits} faults met, {len(bad)} failures, {time.time() - t0:.1f} s")
    for r in bad[:a.show]:
        print(f"  FAIL k={r['k']}{'/' + str(r['seed']) if r['seed'] else ''} before `{r['point']}` rc={r.get('rc')}: {'; '.join(r['fail'])}")
    if len(bad) > a.show: print(f"  ... {len(bad) - a.show} more")
    if a.keep: print("  states kept in", a.work)
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"mode": a.mode, "scope": a.scope, "power": a.power, "points": n, "runs": len(rows), "hits": hits,
                       "failures": len(bad), "list": z["points"], "results": rows}, f, indent=1)
    return 1 if bad else 0

if __name__ == "__main__":
    sys.exit(main())
