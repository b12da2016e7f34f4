import { readFileSync, writeFileSync } from 'node:fs'

/** Bytes by which a process has grown at most since now, in memory that is really there. */
export function watchMemory(pid: number): () => number {
  // Makes the highest mark what it is now.
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
  const before = inMemory(pid, 'VmRSS')
  return () => inMemory(pid, 'VmHWM') - before
}

function inMemory(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const [, kilobytes] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(
    readFileSync(`/proc/${pid}/status`, 'utf8'),
  )!
  return Number(kilobytes) * 1024
}
