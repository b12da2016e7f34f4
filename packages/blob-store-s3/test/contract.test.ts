import { testArchiveContract } from '@tutti/blob-store/archive-contract'
import { testBlobStoreContract } from '@tutti/blob-store/contract'
import { describeOnS3 } from './describe-on-s3.ts'

describeOnS3('contract', (bucket) => {
  testBlobStoreContract('s3', async () => bucket().store())
  // All streams go through a file, all blobs in parts.
  testBlobStoreContract('s3 in parts', async () =>
    bucket().store({ limits: { memoryBytes: 0, lookFirstBytes: 0, singlePutBytes: 1 } }),
  )
  testBlobStoreContract('s3 without conditional writes', async () =>
    bucket().store({ conditionalWrites: false }),
  )
  testArchiveContract('s3', async () => bucket().store().archive)
  testArchiveContract(
    's3 in parts',
    async () => bucket().store({ limits: { memoryBytes: 0, lookFirstBytes: 0, singlePutBytes: 1 } }).archive,
  )
})
