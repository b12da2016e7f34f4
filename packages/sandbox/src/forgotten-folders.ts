import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isSameProcess } from './processes.ts'
import { stateFile } from './sandbox-state.ts'

/**
 * Folders under the root that no state names: of a probe whose process is dead, and of sandboxes whose state is gone. A sandbox's
 * state is written before its folder and removed after it.
 */
export async function forgottenFolders(root: string): Promise<string[]> {
  const names = await readdir(root).catch(() => [])
  return names.filter((name) => isForgotten(root, name)).map((name) => join(root, name))
}

function isForgotten(root: string, name: string): boolean {
  const [, pid, start] = /^probe-(\d+)-(\d+)$/.exec(name) ?? []
  if (pid !== undefined) return !isSameProcess(Number(pid), start!)
  return /^[0-9a-f]{24}$/.test(name) && !existsSync(stateFile(root, name))
}
