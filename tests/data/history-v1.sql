PRAGMA application_id = 1128428616;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE copies (
            run INTEGER NOT NULL REFERENCES runs (id),
            place INTEGER NOT NULL,
            copy TEXT NOT NULL,
            dialect TEXT NOT NULL,
            initiator TEXT NOT NULL,
            bytes_per_second REAL,
            low_bytes_per_second REAL,
            high_bytes_per_second REAL,
            runs INTEGER,
            cap TEXT NOT NULL,
            confidence REAL NOT NULL,
            ceiling_bytes_per_second REAL,
            predicted_bytes_per_second REAL,
            PRIMARY KEY (run, place)
        );
INSERT INTO "copies" VALUES(1,0,'pull.cached','3.1.1','client',112400000.0,111200000.0,112900000.0,3,'network/path/link-rate',0.97,117550000.0,7.06144796862912535679e+08);
INSERT INTO "copies" VALUES(1,1,'pull.uncached','3.1.1','client',23600000.0,23400000.0,23900000.0,3,'disk/server/read',0.97,25000000.0,112400000.0);
INSERT INTO "copies" VALUES(1,2,'push.cached','3.1.1','client',109300000.0,108800000.0,110100000.0,3,'network/path/link-rate',0.97,117550000.0,1.54243055434163600205e+08);
INSERT INTO "copies" VALUES(1,3,'push.uncached','3.1.1','client',108200000.0,107800000.0,109000000.0,3,'network/path/link-rate',0.97,117550000.0,1.54243055434163600205e+08);
INSERT INTO "copies" VALUES(1,4,'pull.uncached','smb1','client',22900000.0,22400000.0,23100000.0,3,'disk/server/read',0.97,25000000.0,114611250.0);
INSERT INTO "copies" VALUES(2,0,'pull.cached','3.1.1','client',112400000.0,111200000.0,112900000.0,3,'network/path/link-rate',0.97,117550000.0,7.06144796862912535679e+08);
INSERT INTO "copies" VALUES(2,1,'pull.uncached','3.1.1','client',23600000.0,23400000.0,23900000.0,3,'disk/server/read',0.97,25000000.0,112400000.0);
INSERT INTO "copies" VALUES(2,2,'push.cached','3.1.1','client',109300000.0,108800000.0,110100000.0,3,'network/path/link-rate',0.97,117550000.0,1.54243055434163600205e+08);
INSERT INTO "copies" VALUES(2,3,'push.uncached','3.1.1','client',108200000.0,107800000.0,109000000.0,3,'network/path/link-rate',0.97,117550000.0,1.54243055434163600205e+08);
INSERT INTO "copies" VALUES(2,4,'pull.uncached','smb1','client',22900000.0,22400000.0,23100000.0,3,'disk/server/read',0.97,25000000.0,114611250.0);
CREATE TABLE runs (
            id INTEGER PRIMARY KEY,
            started TEXT NOT NULL,
            started_unix_seconds REAL NOT NULL,
            elapsed_seconds REAL NOT NULL,
            share TEXT NOT NULL,
            client TEXT NOT NULL,
            server TEXT,
            status TEXT NOT NULL,
            version TEXT NOT NULL,
            headline TEXT,
            UNIQUE (started, share, client)
        );
INSERT INTO "runs" VALUES(1,'2026-11-20T02:00:00+00:00',1795140000.0,41.3,'//nas/media','desk','nas','complete','0.1.0','pull.uncached');
INSERT INTO "runs" VALUES(2,'2026-11-21T02:00:00+00:00',1795226400.0,41.3,'//nas/media','desk','nas','complete','0.1.0','pull.uncached');
CREATE INDEX runs_of_two_ends ON runs (share, client, started_unix_seconds);
COMMIT;
