import { readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Moves the shell into each group, then becomes the program: nothing that the program starts can be outside. Arguments: number of
 * folders, the folders, the program.
 */
const enterScript =
  'n=$1; shift; while [ "$n" -gt 0 ]; do echo $$ > "$1/cgroup.procs" || exit 97; shift; n=$((n-1)); done; exec "$@"'

export const enterGroups = (folders: readonly string[]): string[] => [
  '/bin/sh',
  '-c',
  enterScript,
  'tutti-enter',
  String(folders.length),
  ...folders,
]

export function groupProcesses(folders: readonly string[]): number[] {
  const pids = new Set<number>()
  for (const folder of folders) {
    for (const line of readGroupFile(folder, 'cgroup.procs').split('\n')) if (line) pids.add(Number(line))
  }
  return [...pids]
}

/** The number behind `name` in a flat keyed file such as `pids.events`; 0 when there is none. */
export function groupCount(folder: string, file: string, name: string): number {
  const found = new RegExp(`^${name} (\\d+)$`, 'm').exec(readGroupFile(folder, file))
  return Number(found?.[1] ?? 0)
}

export function readGroupFile(folder: string, file: string): string {
  try {
    return readFileSync(join(folder, file), 'utf8')
  } catch {
    return ''
  }
}

export const writeGroupFile = (folder: string, file: string, value: string | number): void =>
  writeFileSync(join(folder, file), String(value))

/** Removes the groups that are there. @throws the system's error while one still has processes. */
export function removeGroups(folders: readonly string[]): void {
  for (const folder of folders) {
    try {
      rmdirSync(folder)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
  }
}
