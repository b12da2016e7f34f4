import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/**
 * When a process started, as a text that no later process with the same number has; undefined when there is no such process or
 * it has ended and only waits to be reaped.
 */
export function processStart(pid: number): string | undefined {
  if (!Number.isInteger(pid) || pid <= 0) return undefined
  return process.platform === 'linux' ? linuxStart(pid) : portableStart(pid)
}

/** Whether the process that was recorded with this start is still there. */
export const isSameProcess = (pid: number, start: string): boolean => processStart(pid) === start

function linuxStart(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name stands in parentheses and may contain any character, also `)`.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined
    return `${fields[19]}@${bootId()}`
  } catch {
    return undefined
  }
}

let knownBoot: string | undefined
/** Ticks since boot mean nothing after the next boot. */
function bootId(): string {
  knownBoot ??= readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim().slice(0, 8)
  return knownBoot
}

function portableStart(pid: number): string | undefined {
  try {
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      env: { ...process.env, LC_ALL: 'C' },
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
    return line === '' || line.startsWith('Z') ? undefined : line.replace(/^\S+\s+/, '')
  } catch {
    return undefined
  }
}
