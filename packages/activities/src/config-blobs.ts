import {
  TuttiError,
  type AgentConfig,
  type BlobId,
  type DeliveryPlan,
  type EnsembleConfig,
} from '@tutti/core'
import type { BlobStore } from '@tutti/blob-store'
import { LRUCache } from 'lru-cache'

/** Reads the JSON blobs that workflows name; blobs never change, so the small ones are kept. */
export interface ConfigBlobs {
  agent(id: BlobId, signal: AbortSignal): Promise<AgentConfig>
  ensemble(id: BlobId, signal: AbortSignal): Promise<EnsembleConfig>
  plan(id: BlobId, signal: AbortSignal): Promise<DeliveryPlan>
  text(id: BlobId, signal: AbortSignal): Promise<string>
}

const kept = 256

export function createConfigBlobs(blobs: BlobStore): ConfigBlobs {
  const cache = new LRUCache<BlobId, object>({ max: kept })
  const text = async (id: BlobId, signal: AbortSignal) =>
    new TextDecoder().decode(await blobs.get(id, signal))

  const json = async <T extends object>(id: BlobId, signal: AbortSignal): Promise<T> => {
    const value = (cache.get(id) ?? JSON.parse(await text(id, signal))) as T & { readonly version?: number }
    cache.set(id, value)
    if (value.version !== undefined && value.version !== 1) {
      throw new TuttiError('failed_precondition', `Blob ${id} has a newer format. Update Tutti.`, { id })
    }
    return value
  }

  return { agent: json<AgentConfig>, ensemble: json<EnsembleConfig>, plan: json<DeliveryPlan>, text }
}
