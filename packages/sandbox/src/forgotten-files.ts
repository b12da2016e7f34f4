import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { isAbandoned } from '@tutti/processes'
import { isSandboxId, stateFile } from './sandbox-state.ts'

/**
 * What lies under the root and belongs to nobody: of a process that died while it probed or wrote a state, and folders of sandboxes
 * whose state is gone. A sandbox's state is written before its folder and removed after it.
 */
export async function forgottenFiles(root: string): Promise<string[]> {
  const names = await readdir(root).catch(() => [])
  return names.filter((name) => isForgotten(root, name)).map((name) => join(root, name))
}

const isForgotten = (root: string, name: string): boolean =>
  isAbandoned('probe', name) ||
  isAbandoned('state', name) ||
  (isSandboxId(name) && !existsSync(stateFile(root, name)))
