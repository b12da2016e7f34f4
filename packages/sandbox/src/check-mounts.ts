import { realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import { mountProblem, TuttiError } from '@tutti/core'
import type { SandboxSpec } from './port.ts'

/**
 * Refuses what this host does not have, and what must not be mounted, also where links lead to it: the API sees only the text
 * of a path.
 *
 * @param own folders of Tutti itself, which no agent may see.
 * @throws TuttiError `invalid_argument` with the path.
 */
export function checkMounts({ policy, readOnly }: SandboxSpec, own: readonly string[]): void {
  for (const { host } of readOnly) realPath(host)
  const ownPaths = own.flatMap((folder) => [resolve(folder), existingPath(folder) ?? resolve(folder)])
  for (const path of policy.mounts) {
    const problem = mountProblem(realPath(path), ownPaths) ?? mountProblem(path, ownPaths)
    if (problem) throw refuse(path, `${path} cannot be mounted: ${problem}. Mount only what the agent needs.`)
  }
}

function realPath(path: string): string {
  const real = existingPath(path)
  if (real !== undefined) return real
  throw refuse(path, `The path to mount, ${path}, does not exist on this host.`)
}

function existingPath(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}

const refuse = (path: string, message: string) =>
  new TuttiError('invalid_argument', message, { field: 'sandbox.mounts', path })
