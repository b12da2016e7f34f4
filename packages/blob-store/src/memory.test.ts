import { testBlobStoreContract } from './contract.ts'
import { createMemoryBlobStore } from './memory.ts'

testBlobStoreContract('memory', async () => createMemoryBlobStore())
