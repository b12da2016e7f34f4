import { CreateMultipartUploadCommand, ListMultipartUploadsCommand } from '@aws-sdk/client-s3'
import { expect, test } from 'vitest'
import { abortAbandonedUploads } from '../src/abandoned-uploads.ts'
import { s3Settings } from '../src/s3-settings.ts'
import { describeOnS3 } from './describe-on-s3.ts'

const never = new AbortController().signal
const dayMs = 24 * 60 * 60 * 1000

describeOnS3('abandoned uploads', (bucket) => {
  test('those of this store are aborted when they are older than a day, and no others', async () => {
    const { client, name } = bucket()
    const keys = ['ours/files/sha256_1', 'theirs/files/sha256_1', 'ours/else']
    for (const Key of keys) await client.send(new CreateMultipartUploadCommand({ Bucket: name, Key }))
    const left = async () =>
      (await client.send(new ListMultipartUploadsCommand({ Bucket: name }))).Uploads?.map(({ Key }) => Key) ??
      []
    const settings = s3Settings({ bucket: name, prefix: 'ours' })
    await abortAbandonedUploads(client, settings, never)
    expect(await left()).toHaveLength(3)
    await abortAbandonedUploads(client, settings, never, Date.now() + dayMs + 60_000)
    expect(new Set(await left())).toEqual(new Set(['ours/else', 'theirs/files/sha256_1']))
  })
})
