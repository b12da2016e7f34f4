import { mirrorRefs, TuttiError, type EnsembleConfig } from '@tutti/core'
import type { Mirror } from '@tutti/git'
import type { ConfigBlobs } from './config-blobs.ts'
import type { EnsembleScope } from './contract.ts'
import type { ActivityDeps } from './deps.ts'
import { repositoryLocation } from '@tutti/store'

/** What every step of an ensemble's synthesis starts with: its configuration, the mirror, and the commit that all began from. */
export async function openEnsemble(
  deps: ActivityDeps,
  configs: ConfigBlobs,
  scope: EnsembleScope,
  signal: AbortSignal,
): Promise<{ config: EnsembleConfig; mirror: Mirror; location: string; base: string }> {
  const config = await configs.ensemble(scope.configBlobId, signal)
  const location = await repositoryLocation(deps.catalog.repositories, scope.owner, config.repository, signal)
  const mirror = await deps.mirrors.attach(location, signal)
  const base = await mirror.readRef(mirrorRefs.base(scope.ensembleId), signal)
  if (!base)
    throw new TuttiError(
      'data_loss',
      `The commit that ${scope.ensembleId} began from is gone from the mirror.`,
    )
  return { config, mirror, location, base }
}
