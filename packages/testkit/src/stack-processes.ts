import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { allPids, isRunning, pidNamespace } from '@tutti/processes'

/** In the environment of every process inside a sandbox. */
const sandboxMarker = 'TUTTI_SANDBOX_ID'

/** A PATH that names the stack's folder: bubblewrap hands it on to its own processes, so that they can be told from others'. */
export const markedPath = (folder: string): string => `${process.env['PATH']}:${join(folder, 'none')}`

/** Living processes with the folder in their command line: roles and Temporal. Linux only. */
export const processesNaming = (folder: string): number[] =>
  allPids().filter((pid) => pid !== process.pid && read(pid, 'cmdline').includes(folder))

/**
 * Living processes of the sandboxes that a stack with this {@link markedPath} made: bubblewrap's own, all in their pid
 * namespaces, and those that carry the marker of a sandbox without isolation.
 */
export function sandboxProcesses(folder: string): string[] {
  if (process.platform !== 'linux') return []
  const own = pidNamespace(process.pid)
  const roots = allPids().filter((pid) => {
    const environment = read(pid, 'environ')
    if (!environment.includes(join(folder, 'none'))) return false
    return read(pid, 'cmdline').includes('bwrap') || environment.includes(`${sandboxMarker}=`)
  })
  const namespaces = new Set(roots.map(pidNamespace).filter((name) => name !== own && name !== undefined))
  const all = new Set([...roots, ...allPids().filter((pid) => namespaces.has(pidNamespace(pid)))])
  return [...all].filter(isRunning).map((pid) => `${pid} ${read(pid, 'cmdline').replaceAll('\0', ' ')}`)
}

function read(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8')
  } catch {
    // It has just ended, or is not ours to look at.
    return ''
  }
}
