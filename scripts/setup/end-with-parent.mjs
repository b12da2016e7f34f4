import { isMainThread } from 'node:worker_threads'

const CHECK_MS = 1_000
const parent = Number(process.env['TUTTI_PARENT_PID'])
delete process.env['TUTTI_PARENT_PID']

/** Preloaded into a program that has a session of its own: when its launcher is killed outright, it drains and ends. */
if (isMainThread && process.ppid === parent) {
  const timer = setInterval(() => {
    if (process.ppid === parent) return
    clearInterval(timer)
    process.kill(process.pid, 'SIGTERM')
  }, CHECK_MS)
  timer.unref()
}
