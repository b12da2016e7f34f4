import type { Archive, BlobStore } from '@tutti/blob-store'
import type { Clock, CrashPoint } from '@tutti/core'
import type { Mirrors } from '@tutti/git'
import type { Catalog, EventLog } from '@tutti/store'
import type { Logger } from 'pino'

import type { ApiConfig } from './api-config.ts'
import type { ApiMetrics } from './metrics.ts'
import type { SystemInformation } from './system-information.ts'
import type { TemporalGateway } from './temporal-gateway.ts'

/** What the composition root gives the API. */
export interface ApiDeps {
  readonly eventLog: EventLog
  readonly catalog: Catalog
  readonly blobs: BlobStore
  readonly archive: Archive
  readonly mirrors: Mirrors
  readonly temporal: TemporalGateway
  readonly system: SystemInformation
  readonly clock: Clock
  readonly config: ApiConfig
  readonly crashPoint: CrashPoint
  readonly log: Logger
  readonly metrics: ApiMetrics
  /** The data folder's key (design §10): whoever has it is the owner {@link localOwner}. */
  readonly localKey: string
}

/** The owner of everything that is done with the local key or a configured API key. */
export const localOwner = 'local'
