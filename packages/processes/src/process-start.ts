import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { bootId, processStat } from './processes.ts'

/** Other systems than Linux have no /proc; `ps` tells there. */
const hasProc = existsSync('/proc/self/stat')

let own: string | undefined

/**
 * When a process started, as a text that no later process with the same number has, over restarts of the machine too; undefined
 * when there is no such process, or it has ended and only waits to be reaped. Letters, digits, `@` and `_`: fit for a file name.
 */
export function processStart(pid: number): string | undefined {
  if (!Number.isInteger(pid) || pid <= 0) return undefined
  return pid === process.pid ? (own ??= startOf(pid)) : startOf(pid)
}

/** Whether the process that was recorded with this {@link processStart} is still there; a zombie is not. */
export const isSameProcess = (pid: number, start: string): boolean => processStart(pid) === start

/** Whether a pid is that of a living process, whoever's it is; a zombie does not live. */
export function isRunning(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
  return !hasProc || isLiving(processStat(pid)?.state)
}

function startOf(pid: number): string | undefined {
  if (!hasProc) return portableStart(pid)
  const stat = processStat(pid)
  // Ticks since boot mean nothing after the next boot.
  return stat && isLiving(stat.state) ? `${stat.startTicks}@${bootId().slice(0, 8)}` : undefined
}

const isLiving = (state: string | undefined): boolean => state !== undefined && state !== 'Z' && state !== 'X'

function portableStart(pid: number): string | undefined {
  try {
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      env: { ...process.env, LC_ALL: 'C' },
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
    if (line === '' || line.startsWith('Z')) return undefined
    return line.replace(/^\S+\s+/, '').replaceAll(/[^A-Za-z0-9]+/g, '_')
  } catch {
    return undefined
  }
}
