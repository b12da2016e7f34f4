import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'

export interface ProcessStat {
  readonly pid: number
  readonly parent: number
  readonly state: string
  /** Clock ticks since boot: with the pid it names one process for good. */
  readonly start: string
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
    start: fields[19] ?? '',
    residentBytes: Number(fields[21]) * pageBytes,
  }
}

/** Other systems than Linux can only say whether a pid is in use. */
const hasProc = existsSync('/proc/self/stat')

/** Whether exactly this process still runs; a zombie does not. */
export function isSameProcess(pid: number, start: string): boolean {
  if (!hasProc) return isPidInUse(pid)
  const stat = processStat(pid)
  return stat !== undefined && stat.start === start && stat.state !== 'Z'
}

/** Whether a pid is that of a living process. */
export function isRunning(pid: number): boolean {
  if (!hasProc) return isPidInUse(pid)
  const state = processStat(pid)?.state
  return state !== undefined && state !== 'Z'
}

function isPidInUse(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** Every process that can be seen; none where there is no /proc. */
export function allPids(): number[] {
  if (!hasProc) return []
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

export const bootId = (): string => readProc('/proc/sys/kernel/random/boot_id')?.trim() ?? ''

function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return undefined
  }
}
