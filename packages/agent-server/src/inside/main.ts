import { isMainThread, workerData } from 'node:worker_threads'
import { takeEarlyHashes } from './early-hashes.ts'
import type { HashTable } from './hash-table.ts'
import { serve } from './serve.ts'

if (isMainThread) serve()
else takeEarlyHashes(workerData as HashTable)
