import type { AgentId, BlobId, EnsembleConfig } from '@tutti/core'
import type { EnsembleId } from '@tutti/core'
import type { ActivityDeps } from './deps.ts'
import { loadConflicts } from './report-conflicts.ts'

/** Title and body of an ensemble's pull request. */
export async function describeEnsemble(
  deps: ActivityDeps,
  request: {
    readonly ensembleId: EnsembleId
    readonly owner: string
    readonly included: readonly AgentId[]
    readonly reportBlobId: BlobId
    readonly config: EnsembleConfig
  },
  signal: AbortSignal,
): Promise<{ title: string; body: string }> {
  const { ensembleId, config, included } = request
  const row = await deps.catalog.ensembles.get(request.owner, ensembleId, signal)
  const attempts = await deps.catalog.attempts.list(ensembleId, signal)
  const conflicts = await loadConflicts(deps.blobs, request.reportBlobId, signal)
  const line = (bcId: AgentId) => {
    const attempt = attempts.find((known) => known.bcId === bcId)
    const check = attempt?.check ? `, check exit code ${attempt.check.exitCode ?? 'none'}` : ''
    return `- \`${bcId}\`: ${attempt?.filesChanged ?? 0} files changed${check}${included.includes(bcId) ? '' : ` (left out: ${attempt?.reason ?? 'unknown'})`}`
  }
  const body = [
    `Made by ${row.childIds.length} agents with the strategy \`${config.strategy}\`.`,
    '',
    ...row.childIds.map(line),
    ...(conflicts.length > 0
      ? ['', `${conflicts.length} conflicting places kept the base; see the report of \`${ensembleId}\`.`]
      : []),
  ]
  return { title: config.delivery.title || row.title, body: body.join('\n') }
}
