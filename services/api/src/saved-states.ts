import type { BlobStore } from '@tutti/blob-store'
import { TuttiError, type BlobId } from '@tutti/core'
import {
  PersistedMetadataVersion,
  type CloudAgentState,
  type CloudAgentStatePersistedMetadata,
} from '@tutti/proto'
import {
  blobIdToBytes,
  blobsOfState,
  decodeCloudAgentState,
  workflowStatusToWire,
} from '@tutti/protocol/wire'
import type { BlobRefCatalog, SavedState } from '@tutti/store'

/** A blob with its bytes, as `aiserver.v1.PrefetchedBlob`. */
export interface LoadedBlob {
  readonly id: Uint8Array<ArrayBuffer>
  readonly value: Uint8Array<ArrayBuffer>
}

/** The states of agents as they are stored (seed 000 §1). */
export interface SavedStates {
  /** @throws TuttiError `failed_precondition` for a format that this version does not know, `data_loss` when the blob is gone. */
  load(saved: SavedState, signal: AbortSignal): Promise<CloudAgentState>
  /** @throws TuttiError `data_loss` when the blob is gone. */
  loadBlob(blobId: BlobId, signal: AbortSignal): Promise<CloudAgentState>
  /** The blobs that a state names and that the owner may read, without those that the client has, `maxBytes` in all at most. */
  named(
    owner: string,
    state: CloudAgentState,
    known: ReadonlySet<BlobId>,
    maxBytes: number,
    signal: AbortSignal,
  ): AsyncGenerator<LoadedBlob>
}

/** Prompts are never longer; of longer outputs a client asks for what it shows. */
const maxBlobBytes = 1 << 20

export function createSavedStates(deps: { blobs: BlobStore; blobRefs: BlobRefCatalog }): SavedStates {
  const { blobs, blobRefs } = deps
  const savedStates: SavedStates = {
    async load({ version, blobId }, signal) {
      if (version !== 1) {
        throw new TuttiError(
          'failed_precondition',
          `The agent's state was saved in format ${version}, which this version of Tutti does not know. Update Tutti.`,
          { version },
        )
      }
      return savedStates.loadBlob(blobId, signal)
    },
    async loadBlob(blobId, signal) {
      const bytes = await blobs.get(blobId, signal).catch((error: unknown) => {
        if (!isGone(error)) throw error
        throw new TuttiError(
          'data_loss',
          `The stored state ${blobId} is gone; the next turn makes it anew.`,
          { id: blobId },
          error,
        )
      })
      return decodeCloudAgentState(bytes)
    },
    async *named(owner, state, known, maxBytes, signal) {
      let left = maxBytes
      for (const id of blobsOfState(state)) {
        // A state repeats what an agent said, so a name in it gives no right to read.
        if (known.has(id) || !(await blobRefs.has(owner, id, signal))) continue
        const value = await small(id, Math.min(left, maxBlobBytes), signal)
        if (!value) continue
        left -= value.byteLength
        yield { id: blobIdToBytes(id), value }
      }
    },
  }
  return savedStates

  /** Undefined when the blob is longer or gone. */
  async function small(id: BlobId, most: number, signal: AbortSignal) {
    const chunks: Uint8Array[] = []
    let size = 0
    try {
      for await (const chunk of blobs.stream(id, signal)) {
        size += chunk.byteLength
        if (size > most) return undefined
        chunks.push(chunk)
      }
    } catch (error) {
      if (isGone(error)) return undefined
      throw error
    }
    return new Uint8Array(Buffer.concat(chunks))
  }
}

const isGone = (error: unknown) => error instanceof TuttiError && error.code === 'not_found'

/** `aiserver.v1.CloudAgentStatePersistedMetadata` without its type name. */
export const stateMetadata = (saved: SavedState): Omit<CloudAgentStatePersistedMetadata, '$typeName'> => ({
  cloudAgentStateBlobId: blobIdToBytes(saved.blobId),
  offsetKey: saved.offsetKey,
  timestampMs: BigInt(saved.savedAt),
  workflowStatus: workflowStatusToWire(saved.status),
  version: PersistedMetadataVersion.PERSISTED_METADATA_VERSION_1,
})
