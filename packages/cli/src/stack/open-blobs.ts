import { join } from 'node:path'
import {
  createFilesystemArchive,
  createFilesystemBlobStore,
  type Archive,
  type BlobStore,
} from '@tutti/blob-store'
import type { CrashPoint } from '@tutti/core'
import type { ResolvedConfig } from '../config/load-config.ts'

export interface OpenBlobs {
  readonly blobs: BlobStore
  readonly archive: Archive
  close(): void
}

/** The blob store and the archive that the settings choose: a bucket when one is named, else folders. */
export async function openBlobs(
  dataDir: string,
  config: ResolvedConfig,
  crashPoint: CrashPoint,
): Promise<OpenBlobs> {
  const text = (name: 'blobs.bucket' | 'blobs.prefix' | 'blobs.endpoint' | 'blobs.region') =>
    String(config[name])
  const bucket = text('blobs.bucket')
  if (bucket === '')
    return {
      blobs: createFilesystemBlobStore({ root: join(dataDir, 'blobs'), crashPoint }),
      archive: createFilesystemArchive({ root: join(dataDir, 'archive') }),
      close() {},
    }
  // The SDK is large, and most servers need none of it.
  const { createS3BlobStore } = await import('@tutti/blob-store-s3')
  const [prefix, endpoint, region] = [text('blobs.prefix'), text('blobs.endpoint'), text('blobs.region')]
  const store = createS3BlobStore({
    bucket,
    crashPoint,
    ...(prefix !== '' && { prefix }),
    ...(endpoint !== '' && { endpoint }),
    ...(region !== '' && { region }),
    conditionalWrites: config['blobs.conditional_writes'] === 'yes',
  })
  return { blobs: store, archive: store.archive, close: () => store.close() }
}

/** Where blobs are, for people. */
export function describeBlobs(dataDir: string, config: ResolvedConfig): { adapter: string; address: string } {
  const bucket = String(config['blobs.bucket'])
  if (bucket === '') return { adapter: 'filesystem', address: `${dataDir}/blobs` }
  const place = [bucket, String(config['blobs.prefix'])].filter(Boolean).join('/')
  const endpoint = String(config['blobs.endpoint'])
  return { adapter: 's3', address: endpoint === '' ? place : `${place} at ${endpoint}` }
}
