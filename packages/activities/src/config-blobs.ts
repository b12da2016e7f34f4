import {
  TuttiError,
  type AgentConfig,
  type BlobId,
  type DeliveryPlan,
  type EnsembleConfig,
} from '@tutti/core'
import type { BlobStore } from '@tutti/blob-store'

/** Reads the JSON blobs that workflows name; blobs never change, so the small ones are kept. */
export interface ConfigBlobs {
  agent(id: BlobId, signal: AbortSignal): Promise<AgentConfig>
  ensemble(id: BlobId, signal: AbortSignal): Promise<EnsembleConfig>
  plan(id: BlobId, signal: AbortSignal): Promise<DeliveryPlan>
  text(id: BlobId, signal: AbortSignal): Promise<string>
}

const kept = 256

export function createConfigBlobs(blobs: BlobStore): ConfigBlobs {
  const cache = new Map<BlobId, unknown>()
  const text = async (id: BlobId, signal: AbortSignal) =>
    new TextDecoder().decode(await blobs.get(id, signal))

  const json = async <T>(id: BlobId, signal: AbortSignal): Promise<T> => {
    if (!cache.has(id)) {
      if (cache.size >= kept) cache.delete(cache.keys().next().value!)
      cache.set(id, JSON.parse(await text(id, signal)))
    }
    const value = cache.get(id) as T & { readonly version?: number }
    if (value.version !== undefined && value.version !== 1) {
      throw new TuttiError('failed_precondition', `Blob ${id} has a newer format. Update Tutti.`, { id })
    }
    return value
  }

  return { agent: json<AgentConfig>, ensemble: json<EnsembleConfig>, plan: json<DeliveryPlan>, text }
}
