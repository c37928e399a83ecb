-- Version 2: what a device's own clock says of a sample's steps, in parts (schema.sql has the tables). NULL as device_ns
-- is, and where only their sum is known.

ALTER TABLE sample ADD COLUMN device_head_ns INTEGER;   -- of device_ns, the head's; the rest are the layers'
ALTER TABLE sample ADD COLUMN device_commit_ns INTEGER; -- beside it: commits, the last one's not among them

PRAGMA user_version = 2;
