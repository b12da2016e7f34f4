import { ifFound, limits, mirrorRefs, TuttiError, type EnsembleConfig } from '@tutti/core'
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
  const base = await baseOf(deps, scope, location, signal)
  if (!base)
    throw new TuttiError(
      'data_loss',
      `The commit that ${scope.ensembleId} began from is not known; none of its children has begun.`,
    )
  const mirror = await deps.mirrors.restore(location, base, signal)
  return { config, mirror, location, base }
}

/** As this host's mirror has it; on a host that knows nothing of the ensemble, as its children do. */
async function baseOf(
  { mirrors, catalog }: ActivityDeps,
  { ensembleId, owner }: EnsembleScope,
  location: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const mirror = await ifFound(mirrors.attach(location, signal))
  const held = await mirror?.readRef(mirrorRefs.base(ensembleId), signal)
  if (held) return held
  const page = { pageSize: limits.maxChildren, pageToken: '' }
  const { items } = await catalog.agents.list(owner, { ensembleId }, page, signal)
  return items.find(({ baseCommit }) => baseCommit)?.baseCommit
}
