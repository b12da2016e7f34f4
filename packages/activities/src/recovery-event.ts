import type { RecoveryEvent } from '@tutti/protocol'
import { pathFields } from '@tutti/workspace/log'
import type { Booted } from './boot-sandbox.ts'
import type { Activities } from './contract.ts'
import type { WantedWorkspace } from './wanted-workspace.ts'

const maxMissing = 100

/** What a new sandbox has of the workspace, and what it lacks. */
export function recoveryEvent(
  { incarnation, recovery }: Parameters<Activities['provisionSandbox']>[0],
  commit: string,
  { manifestDigest, withoutSubmodules, withoutRepository, steps }: Booted,
  { wanted, told, ms }: WantedWorkspace,
): RecoveryEvent {
  const { before, changes, git } = wanted
  const submodules = withoutSubmodules.map((path) => ({ ...pathFields(path), reason: 'submodule' as const }))
  const repository = withoutRepository ? [{ path: '.git', reason: 'unreadable' as const }] : []
  const missing = [...repository, ...submodules, ...wanted.missing]
  return {
    type: 'recovery',
    incarnation,
    reason: recovery ? 'requested' : (before ?? 'lost'),
    ...(recovery && { requestId: recovery.requestId }),
    ...(recovery?.at !== undefined && told !== undefined && { atOffset: told }),
    commit,
    replayed: changes.length,
    index:
      git && !missing.some(({ path }) => path === '.git' || path === '.git/index') ? 'restored' : 'rebuilt',
    manifestDigest,
    ...(wanted.capturedAt !== undefined && { capturedAt: wanted.capturedAt }),
    proven: wanted.manifestDigest !== undefined,
    missing: missing.slice(0, maxMissing),
    ...(missing.length > maxMissing && { moreMissing: missing.length - maxMissing }),
    steps: [{ name: 'fold', ms }, ...steps],
  }
}
