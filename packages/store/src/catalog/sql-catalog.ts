import type { Clock } from '@tutti/core'
import { createAgentCatalog } from './agents.ts'
import { createAttemptCatalog } from './attempts.ts'
import { createBlobRefCatalog } from './blob-refs.ts'
import { createEnsembleCatalog } from './ensembles.ts'
import { createIdempotencyCatalog } from './idempotency.ts'
import { createLeaseCatalog } from './leases.ts'
import type { Catalog } from './port.ts'
import { createPullRequestCatalog } from './pull-requests.ts'
import { createRepositoryCatalog } from './repositories.ts'
import type { SqlExecutor } from './sql-executor.ts'

/** The catalog on any SQL database with our schema. */
export function createSqlCatalog(deps: { executor: SqlExecutor; clock: Clock }): Catalog {
  return {
    agents: createAgentCatalog(deps),
    ensembles: createEnsembleCatalog(deps),
    attempts: createAttemptCatalog(deps),
    pullRequests: createPullRequestCatalog(deps),
    leases: createLeaseCatalog(deps),
    idempotency: createIdempotencyCatalog(deps),
    blobRefs: createBlobRefCatalog(deps),
    repositories: createRepositoryCatalog(deps),
  }
}
