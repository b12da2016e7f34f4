import { isAgentId, type Attempt, type LogId } from '@tutti/core'
import type { AgentRow, Catalog, EnsembleRow } from '../catalog/port.ts'
import { repositoryLocation } from '../catalog/repository-location.ts'

/** What the catalog has of an agent or an ensemble: with its log, all that makes it again. */
export type LogAbout = { readonly location: string } & (
  | { readonly kind: 'agent'; readonly row: AgentRow }
  | { readonly kind: 'ensemble'; readonly row: EnsembleRow; readonly attempts: readonly Attempt[] }
)

export async function readAbout(
  catalog: Catalog,
  log: LogId,
  owner: string,
  signal: AbortSignal,
): Promise<LogAbout> {
  const place = (repository: string) => repositoryLocation(catalog.repositories, owner, repository, signal)
  if (isAgentId(log)) {
    const row = await catalog.agents.get(owner, log, signal)
    return { kind: 'agent', row, location: await place(row.repository) }
  }
  const row = await catalog.ensembles.get(owner, log, signal)
  const attempts = await catalog.attempts.list(log, signal)
  return { kind: 'ensemble', row, attempts, location: await place(row.repository) }
}
