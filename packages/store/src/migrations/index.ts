import { initial } from './0001-initial.ts'
import { retention } from './0002-retention.ts'
import { recordsByType } from './0003-records-by-type.ts'
import type { Migration } from './migration.ts'

/** All migrations, oldest first; the format of the store is that of the last one. */
export const migrations: readonly Migration[] = [initial, retention, recordsByType]
