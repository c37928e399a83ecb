-- Version 8: two more flags of a sample, and a wider meaning of one.

INSERT INTO flag VALUES
    (64, 'paused', 'its process was stopped, or waited for something else than a processor'),
    (128, 'paged', 'memory was read from the disk while it ran: there is too little of it');
UPDATE flag SET meaning = 'other processes or virtual machines ran' WHERE bit = 8;

PRAGMA user_version = 8;
