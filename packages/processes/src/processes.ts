import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'

export interface ProcessStat {
  readonly pid: number
  readonly parent: number
  readonly state: string
  /** Clock ticks since boot; `processStart` has what names a process for good. */
  readonly startTicks: string
  readonly residentBytes: number
}

const pageBytes = 4096

/** One process of /proc, or undefined when it is gone. */
export function processStat(pid: number): ProcessStat | undefined {
  const text = readProc(`/proc/${pid}/stat`)
  if (text === undefined) return undefined
  // The program's name stands in parentheses and may contain spaces and parentheses itself.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return {
    pid,
    state: fields[0] ?? '',
    parent: Number(fields[1]),
    startTicks: fields[19] ?? '',
    residentBytes: Number(fields[21]) * pageBytes,
  }
}

/** Every process that can be seen; none where there is no /proc. */
export function allPids(): number[] {
  if (!existsSync('/proc')) return []
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
}

/** The id of a process's pid namespace, or undefined when it is gone or not ours to look at. */
export function pidNamespace(pid: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`)
  } catch {
    return undefined
  }
}

/** Processes that carry `NAME=value` in the environment they were started with, and all their descendants. */
export function processesMarked(marker: string): number[] {
  const parents = new Map<number, number>()
  const found = new Set<number>()
  for (const pid of allPids()) {
    const stat = processStat(pid)
    if (!stat || stat.state === 'Z') continue
    parents.set(pid, stat.parent)
    if (readProc(`/proc/${pid}/environ`)?.split('\0').includes(marker)) found.add(pid)
  }
  for (let before = -1; before !== found.size;) {
    before = found.size
    for (const [pid, parent] of parents) if (found.has(parent)) found.add(pid)
  }
  return [...found]
}

export function processesInNamespace(namespace: string): number[] {
  return allPids().filter((pid) => pidNamespace(pid) === namespace)
}

/** Sends a signal; a process that is already gone is no error. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

let knownBoot: string | undefined

/** Another one after each start of the machine; empty where there is no /proc. */
export const bootId = (): string => (knownBoot ??= readProc('/proc/sys/kernel/random/boot_id')?.trim() ?? '')

function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return undefined
  }
}
