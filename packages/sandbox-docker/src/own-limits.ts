import { readFileSync } from 'node:fs'

/** An engine that is not quite root can raise a limit no higher than this process has it, as a rule. */
export function ownHardLimit(name: 'Max open files' | 'Max processes'): number {
  try {
    const line = readFileSync('/proc/self/limits', 'utf8')
      .split('\n')
      .find((text) => text.startsWith(name))
    const hard = Number(line?.slice(name.length).trim().split(/\s+/)[1])
    return Number.isNaN(hard) ? Infinity : hard
  } catch {
    // No such file on this system: the engine knows.
    return Infinity
  }
}
