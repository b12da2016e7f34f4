import type { RecoveryEvent } from '@tutti/protocol'
import { pathFields } from '@tutti/workspace/log'
import type { BootedNewest } from './boot-newest.ts'
import type { Activities } from './contract.ts'

const [maxMissing, maxPassedOver] = [100, 100]

/** What a new sandbox has of the workspace, and what it lacks. */
export function recoveryEvent(
  { incarnation, recovery }: Parameters<Activities['provisionSandbox']>[0],
  { booted, workspace, commit, passedOver }: BootedNewest,
): RecoveryEvent & { steps: NonNullable<RecoveryEvent['steps']> } {
  const { manifestDigest, withoutSubmodules, withoutRepository, steps } = booted
  const { wanted, putBack, told, ms } = workspace
  const { before, changes, git } = wanted
  const submodules = withoutSubmodules.map((path) => ({ ...pathFields(path), reason: 'submodule' as const }))
  const repository = withoutRepository ? [{ path: '.git', reason: 'unreadable' as const }] : []
  const missing = [...repository, ...submodules, ...wanted.missing]
  return {
    type: 'recovery',
    incarnation,
    reason: recovery ? 'requested' : (before ?? 'lost'),
    ...(recovery && { requestId: recovery.requestId }),
    ...((putBack ?? recovery?.at) !== undefined && told !== undefined && { atOffset: told }),
    commit,
    ...(passedOver.length > 0 && { passedOver: passedOver.slice(0, maxPassedOver) }),
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
