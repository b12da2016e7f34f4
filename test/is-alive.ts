import { existsSync, readFileSync } from 'node:fs'

/** Whether a process runs. A zombie, whose end nobody has collected yet, does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    if (!existsSync('/proc/self/stat')) return true
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}
