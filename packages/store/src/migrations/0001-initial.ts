import { sql } from 'kysely'
import type { Migration } from './migration.ts'

export const initial: Migration = {
  format: 1,
  statements: ({ schema }) => [
    schema
      .createTable('logs')
      .addColumn('log_id', 'text', (column) => column.primaryKey())
      .addColumn('owner', 'text', (column) => column.notNull())
      .addColumn('last', 'bigint', (column) => column.notNull())
      .addColumn('closed', 'integer', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull()),
    schema
      .createTable('log_records')
      .addColumn('log_id', 'text', (column) => column.notNull().references('logs.log_id'))
      .addColumn('sequence', 'bigint', (column) => column.notNull())
      .addColumn('owner', 'text', (column) => column.notNull())
      .addColumn('type', 'text', (column) => column.notNull())
      .addColumn('body', 'text', (column) => column.notNull())
      .addColumn('at', 'bigint', (column) => column.notNull())
      .addColumn('producer', 'text', (column) => column.notNull())
      .addColumn('epoch', 'bigint', (column) => column.notNull())
      .addColumn('producer_sequence', 'bigint', (column) => column.notNull())
      .addColumn('format', 'integer', (column) => column.notNull())
      .addColumn('checksum', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('log_records_pk', ['log_id', 'sequence']),
    schema
      .createIndex('log_records_by_producer')
      .on('log_records')
      .columns(['log_id', 'producer', 'epoch', 'producer_sequence', 'sequence']),
    schema
      .createTable('agents')
      .addColumn('bc_id', 'text', (column) => column.primaryKey())
      .addColumn('owner', 'text', (column) => column.notNull())
      .addColumn('ensemble_id', 'text')
      .addColumn('child_index', 'integer')
      .addColumn('title', 'text', (column) => column.notNull())
      .addColumn('repository', 'text', (column) => column.notNull())
      .addColumn('agent_spec', 'text', (column) => column.notNull())
      .addColumn('config_blob_id', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('updated_at', 'bigint', (column) => column.notNull())
      .addColumn('starting', 'integer', (column) => column.notNull())
      .addColumn('status', 'text', (column) => column.notNull())
      .addColumn('state', 'text', (column) => column.notNull())
      .addColumn('had_sandbox', 'integer', (column) => column.notNull())
      .addColumn('incarnation', 'bigint', (column) => column.notNull())
      .addColumn('turns', 'bigint', (column) => column.notNull())
      .addColumn('base_commit', 'text')
      .addColumn('commit_id', 'text')
      .addColumn('files_changed', 'bigint', (column) => column.notNull())
      .addColumn('branch', 'text')
      .addColumn('pr_url', 'text')
      .addColumn('log_sequence', 'bigint', (column) => column.notNull())
      .addColumn('state_blob_id', 'text')
      .addColumn('state_offset_key', 'text')
      .addColumn('state_saved_at', 'bigint')
      .addColumn('state_status', 'text')
      .addColumn('state_version', 'integer')
      .addColumn('open_question', 'text'),
    schema.createIndex('agents_by_owner').on('agents').columns(['owner', 'bc_id']),
    schema.createIndex('agents_by_ensemble').on('agents').columns(['ensemble_id', 'child_index']),
    schema.createIndex('agents_by_status').on('agents').columns(['status', 'updated_at']),
    schema.createIndex('agents_starting').on('agents').columns(['starting', 'created_at']),
    schema
      .createTable('ensembles')
      .addColumn('ensemble_id', 'text', (column) => column.primaryKey())
      .addColumn('owner', 'text', (column) => column.notNull())
      .addColumn('title', 'text', (column) => column.notNull())
      .addColumn('repository', 'text', (column) => column.notNull())
      .addColumn('strategy', 'text', (column) => column.notNull())
      .addColumn('config_blob_id', 'text', (column) => column.notNull())
      .addColumn('child_ids', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('updated_at', 'bigint', (column) => column.notNull())
      .addColumn('starting', 'integer', (column) => column.notNull())
      .addColumn('phase', 'text', (column) => column.notNull())
      .addColumn('reason', 'text')
      .addColumn('result_blob_id', 'text')
      .addColumn('log_sequence', 'bigint', (column) => column.notNull()),
    schema.createIndex('ensembles_by_owner').on('ensembles').columns(['owner', 'ensemble_id']),
    schema.createIndex('ensembles_starting').on('ensembles').columns(['starting', 'created_at']),
    schema
      .createTable('attempts')
      .addColumn('ensemble_id', 'text', (column) => column.notNull().references('ensembles.ensemble_id'))
      .addColumn('bc_id', 'text', (column) => column.notNull())
      .addColumn('owner', 'text', (column) => column.notNull())
      .addColumn('attempt', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('attempts_pk', ['ensemble_id', 'bc_id']),
    schema
      .createTable('pull_requests')
      .addColumn('id', 'text', (column) => column.primaryKey())
      .addColumn('repository', 'text', (column) => column.notNull())
      .addColumn('number', 'integer', (column) => column.notNull())
      .addColumn('owner', 'text', (column) => column.notNull())
      .addColumn('url', 'text', (column) => column.notNull())
      .addColumn('title', 'text', (column) => column.notNull())
      .addColumn('body', 'text', (column) => column.notNull())
      .addColumn('head', 'text', (column) => column.notNull())
      .addColumn('head_commit', 'text', (column) => column.notNull())
      .addColumn('base', 'text', (column) => column.notNull())
      .addColumn('base_commit', 'text', (column) => column.notNull())
      .addColumn('draft', 'integer', (column) => column.notNull())
      .addColumn('state', 'text', (column) => column.notNull())
      .addColumn('source', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addColumn('updated_at', 'bigint', (column) => column.notNull())
      .addUniqueConstraint('pull_requests_number', ['repository', 'number']),
    schema
      .createIndex('pull_requests_open')
      .unique()
      .on('pull_requests')
      .columns(['repository', 'head', 'base'])
      .where(sql<boolean>`state = 'open'`),
    schema.createIndex('pull_requests_by_owner').on('pull_requests').columns(['owner', 'id']),
    schema
      .createTable('leases')
      .addColumn('host', 'text', (column) => column.notNull())
      .addColumn('kind', 'text', (column) => column.notNull())
      .addColumn('holder', 'text', (column) => column.notNull())
      .addColumn('owner', 'text', (column) => column.notNull())
      .addColumn('place', 'bigint', (column) => column.notNull())
      .addColumn('waiting_since', 'bigint', (column) => column.notNull())
      .addColumn('granted_at', 'bigint')
      .addPrimaryKeyConstraint('leases_pk', ['host', 'kind', 'holder']),
    schema
      .createTable('idempotency_keys')
      .addColumn('owner', 'text', (column) => column.notNull())
      .addColumn('key', 'text', (column) => column.notNull())
      .addColumn('digest', 'text', (column) => column.notNull())
      .addColumn('answer', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('idempotency_keys_pk', ['owner', 'key']),
    schema
      .createTable('blob_refs')
      .addColumn('owner', 'text', (column) => column.notNull())
      .addColumn('blob_id', 'text', (column) => column.notNull())
      .addPrimaryKeyConstraint('blob_refs_pk', ['owner', 'blob_id']),
    schema
      .createTable('repositories')
      .addColumn('owner', 'text', (column) => column.notNull())
      .addColumn('name', 'text', (column) => column.notNull())
      .addColumn('location', 'text', (column) => column.notNull())
      .addColumn('created_at', 'bigint', (column) => column.notNull())
      .addPrimaryKeyConstraint('repositories_pk', ['owner', 'name'])
      .addUniqueConstraint('repositories_location', ['owner', 'location']),
  ],
}
